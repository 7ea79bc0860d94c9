"""Path of the shared library. No pathlib: it would take longer to load than the library."""

import os
import sys

_NAMES = {"win32": "dlpack_rs.dll", "darwin": "libdlpack_rs.dylib"}


def library_path() -> str:
    """Of the shared library: DLPACK_RS_LIBRARY, or the package's own, or this checkout's."""
    given = os.environ.get("DLPACK_RS_LIBRARY")
    if given:
        return given
    # The package has it by the name that linked programs ask for, with a version at its end.
    name = _NAMES.get(sys.platform, "libdlpack_rs.so")
    here = os.path.dirname(os.path.abspath(__file__))
    for place in ("lib", "bin", "../../target/lib"):
        folder = os.path.normpath(os.path.join(here, place))
        if os.path.isdir(folder):
            found = [file for file in sorted(os.listdir(folder)) if file.startswith(name)]
            if found:
                return os.path.join(folder, found[0])
    raise ImportError(f"{name} is not in {here}: install the wheel, or `make build` in a checkout")
