"""Where the shared library is. No pathlib: it would take longer to load than the library."""

import os
import sys

_NAMES = {"win32": "dlpack_rs.dll", "darwin": "libdlpack_rs.dylib"}


def library_path():
    """Of the shared library: DLPACK_RS_LIBRARY, or the package's own, or this checkout's."""
    given = os.environ.get("DLPACK_RS_LIBRARY")
    if given:
        return given
    name, here = _NAMES.get(sys.platform, "libdlpack_rs.so"), os.path.dirname(__file__)
    for folder in (here, os.path.join(here, "..", "..", "target", "lib")):
        path = os.path.abspath(os.path.join(folder, name))
        if os.path.exists(path):
            return path
    raise ImportError(f"{name} is not in {here}: install the wheel, or `make build` in a checkout")
