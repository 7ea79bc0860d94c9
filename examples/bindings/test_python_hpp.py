"""The parts of dlpack_rs_python.hpp that the examples leave out: c_tests/python_hpp.cpp, built with
C++ exceptions and without them."""
import gc
import sys

import numpy as np
import pytest

import python_hpp
import python_hpp_returning

MODULES = pytest.mark.parametrize("module", [python_hpp, python_hpp_returning],
                                  ids=lambda module: module.__name__)


@MODULES
def test_private_capsules(module):
    x = np.zeros((2, 3))
    count = sys.getrefcount(x)
    held = module.private_capsule(x)
    assert '"python_hpp.base"' in repr(held)
    assert module.ndim_of_held(held) == 2
    assert sys.getrefcount(x) > count
    for other in (3, x, x.__dlpack__(), None):
        assert module.ndim_of_held(other) == -1
    with pytest.raises(ValueError):
        module.private_capsule_of_dlpack(x)
    del held, other
    gc.collect()
    assert sys.getrefcount(x) == count


@MODULES
def test_memory_of_a_python_object(module):
    text = bytes(range(50, 60))
    count = sys.getrefcount(text)
    array = np.from_dlpack(module.wrap_bytes(text))
    assert array.tobytes() == text and not array.flags.writeable
    capsule = module.dlpack_of_bytes(text, (1, 0))
    assert "dltensor_versioned" in repr(capsule)
    assert sys.getrefcount(text) == count + 2
    with pytest.raises(PermissionError, match="^mine: "):  # read-only, and the legacy struct
        module.dlpack_of_bytes(text, None)
    with pytest.raises(ValueError):
        module.dlpack_of_nothing(text)
    del array, capsule
    gc.collect()
    assert sys.getrefcount(text) == count


@MODULES
def test_adapters_that_return_a_result(module):
    assert '"dltensor"' in repr(module.dlpack_of_number(3))
    with pytest.raises(ValueError, match="a negative number"):
        module.dlpack_of_number(-1)
    with pytest.raises(RuntimeError, match="empty Tensor"):
        module.dlpack_of_number(0)
    assert module.through_table(5) == 5
    with pytest.raises(ValueError, match="a negative number"):
        module.through_table(-5)
    assert module.from_dlpack(np.zeros(4)) == 4
    with pytest.raises(ValueError, match="one dimension"):
        module.from_dlpack(np.zeros((4, 4)))


@MODULES
def test_options_of_from_dlpack(module):
    assert module.limits(np.zeros(6)) == 6
    with pytest.raises(BufferError, match="^mine: "):
        module.limits(np.zeros((6, 6)))
    with pytest.raises(AttributeError):
        module.limits([1])


def test_exceptions_become_pythons():
    for kind, error in enumerate((PermissionError, MemoryError, KeyError, RuntimeError, IndexError,
                                  RuntimeError)):
        with pytest.raises(error):
            python_hpp.thrown(kind)
    assert python_hpp.thrown(6) == 7
