"""Every test that takes `dlpack` runs twice: through ctypes and through cffi."""

import gc
import importlib
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"
sys.path.insert(0, str(EXAMPLES))


@pytest.fixture(params=["dlpack_ctypes", "dlpack_cffi"], ids=["ctypes", "cffi"])
def dlpack(request):
    """The binding. Afterwards no callback and no capsule may be left over."""
    import capsules

    binding = importlib.import_module(request.param)
    yield binding
    gc.collect()
    capsules.sweep()
    assert not capsules._watched, "a callback never ran, or a capsule is still out"
