"""Arguments for C and C++ compilers and CMake, to build a program with this package's library.

The package is a prefix like /usr/local: include/, lib/, lib/cmake/.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from dlpack_rs._library import library_path
from dlpack_rs.abi._headers import include as headers

_HERE = Path(__file__).resolve().parent


def include() -> Path:
    """The folder for the compiler's -I: programs include <dlpack/dlpack_rs.h>."""
    folder = headers()
    return folder.parent if folder.name == "dlpack" else _HERE.parents[1] / "target" / "include"


def cflags() -> str:
    """The compiler's arguments."""
    return shlex.join(["-I" + str(include())])


def libs() -> str:
    """The linker's arguments: the library, and the run-time search path."""
    library = Path(library_path())
    if sys.platform == "win32":
        return shlex.quote(str(_HERE / "lib" / "libdlpack_rs.dll.a"))
    return shlex.join([str(library), "-Wl,-rpath," + str(library.parent)])


def cmakedir() -> Path:
    """The value of CMake's dlpack_rs_DIR for find_package(dlpack_rs)."""
    folder = _HERE / "lib" / "cmake" / "dlpack_rs"
    if not folder.is_dir():
        raise ImportError(f"{folder} is in the wheel only; of a checkout, use what it installs")
    return folder
