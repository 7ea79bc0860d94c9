"""For `pytest --pyargs dlpack_conformance`: the library is the one that DLPACK_CONFORMANCE names.

    DLPACK_CONFORMANCE=numpy pytest --pyargs dlpack_conformance
    DLPACK_CONFORMANCE=mylib.testing:Adapter pytest --pyargs dlpack_conformance

`skips.txt` and `xfails.txt` in the current folder, or DLPACK_CONFORMANCE_SKIPS and
DLPACK_CONFORMANCE_XFAILS, have an identifier and a reason a line. DLPACK_CONFORMANCE_STANDARD is a
year of the array API standard.
"""

import os

import pytest

from dlpack_conformance import LIBRARIES, checks
from dlpack_conformance._cli import known_of
from dlpack_conformance._libraries import Namespace, find
from dlpack_conformance._texts import STANDARDS

_NAME = os.environ.get("DLPACK_CONFORMANCE")
if not _NAME:
    pytest.skip("DLPACK_CONFORMANCE names no library, such as numpy or mylib.testing:Adapter",
                allow_module_level=True)


def _listed(what):
    named = os.environ.get(f"DLPACK_CONFORMANCE_{what.upper()}")
    path = named or f"{what}.txt"
    return known_of(path) if named or os.path.isfile(path) else {}


_YEAR = os.environ.get("DLPACK_CONFORMANCE_STANDARD")
if _YEAR is not None and _YEAR not in STANDARDS:
    raise ValueError(f"DLPACK_CONFORMANCE_STANDARD={_YEAR}: it is one of {', '.join(STANDARDS)}")
test_dlpack = checks(
    find(_NAME) if ":" in _NAME or _NAME in LIBRARIES else Namespace(_NAME),
    known=_listed("xfails"), skips=_listed("skips"), standard=_YEAR)
