"""The library without the Python module, from Python; DLPACK_RS_LIBRARY names it."""

import array
import ctypes

import dlpack_rs
from dlpack_rs import abi

assert abi.lib.dlrs_version_string() and not hasattr(abi.lib, "PyInit__dlpack_rs")
for name in "Tensor", "from_dlpack", "__version__":
    try:
        getattr(dlpack_rs, name)
    except ImportError as error:
        assert f"dlpack_rs.{name} needs the Python module" in str(error), error
    else:
        raise AssertionError(name)
# Python objects are created and freed all the same.
python = ctypes.PyDLL(abi.library_path())
source, tensor = array.array("d", [1.0, 2.0]), abi.Versioned()
assert python.dlrs_py_import(ctypes.py_object(source), None, ctypes.byref(tensor), None) == 0
assert tensor.contents.dl_tensor.data == source.buffer_info()[0]
capsule = ctypes.py_object()
assert python.dlrs_py_capsule_new_take(ctypes.byref(tensor), ctypes.byref(capsule), None) == 0
assert "dltensor_versioned" in repr(capsule.value)
ctypes.pythonapi.Py_DecRef(capsule)  # what we received
del capsule
source.append(3.0)  # the buffer is released
