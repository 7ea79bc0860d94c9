"""The conformance kit, where its distribution is installed: dlpack-conformance."""

import sys

try:
    import dlpack_conformance
    from dlpack_conformance import main as main  # what type checkers see
except ModuleNotFoundError as error:
    if error.name != "dlpack_conformance":
        raise
    raise ModuleNotFoundError("the conformance kit is a package of its own: "
                              "python -m pip install dlpack-conformance",
                              name="dlpack_conformance") from None

sys.modules[__name__] = dlpack_conformance
