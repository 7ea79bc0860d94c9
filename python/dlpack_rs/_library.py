"""Where the shared library is."""

import os
import sys
from pathlib import Path

_NAMES = {"win32": "dlpack_rs.dll", "darwin": "libdlpack_rs.dylib"}


def library_path():
    """Of the shared library: DLPACK_RS_LIBRARY, or the package's own, or this checkout's."""
    given = os.environ.get("DLPACK_RS_LIBRARY")
    if given:
        return given
    name, here = _NAMES.get(sys.platform, "libdlpack_rs.so"), Path(__file__).resolve().parent
    for path in (here / name, here.parents[1] / "target" / "release" / name):
        if path.exists():
            return str(path)
    raise ImportError(f"{name} is not in {here}: install the wheel, or `make build` in a checkout")
