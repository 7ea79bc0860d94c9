"""Dtypes that are registered with NumPy 2.5 or newer for DLPack."""

import sys

import ml_dtypes
import numpy as np
import pytest

import dlpack_rs
import py_module
import pythons

m = py_module.load()
OLD = not hasattr(np.dtypes, "register_dlpack_dtype")
NEW = pytest.mark.skipif(OLD, reason=f"NumPy {np.__version__} has no register of dtypes: 2.5 has")
NAMES = [name for name in dlpack_rs.DTYPES if hasattr(ml_dtypes, name)
         and np.dtype(getattr(ml_dtypes, name)).itemsize * 8 == dlpack_rs.empty(8, name).nbytes]
START = """
import sys
import ml_dtypes, numpy as np
import dlpack_rs
import py_module
m = py_module.load()
def refused(kind, call, *args):
    try:
        call(*args)
    except kind:
        return
    raise AssertionError((call, args))
"""


def program(script, *arguments):
    """Of its own: nothing takes a dtype out of the register."""
    done = pythons.run(sys.executable, script, *arguments)
    assert done.returncode == 0, done.stderr


@NEW
def test_registered_dtypes_go_to_and_from_numpy_at_one_address():
    program(START + """
names = sys.argv[1:]
for name in names:
    refused(BufferError, np.from_dlpack, m.empty(2, name))
for turn in range(2):
    assert sorted(dlpack_rs.register_numpy_dtypes()) == sorted(names)
for name in names:
    kind = np.dtype(getattr(ml_dtypes, name))
    room = np.frombuffer(bytearray(range(96)), "u1").view(kind)
    for array in room, room[::-2], room.reshape(-1, 2).T, room[3], room[:0], room[None, 2:7]:
        array = np.asarray(array)
        t = m.from_dlpack(array)
        assert (t.dtype, t.shape, t.is_copied) == (name, array.shape, False)
        for back in (np.from_dlpack(t), t.numpy(), np.asarray(t), np.from_dlpack(array)):
            assert back.dtype is kind and back.shape == array.shape
            assert back.tobytes() == array.tobytes() and back.flags.writeable == array.flags.writeable
            if array.size:
                assert back.ctypes.data == t.data_ptr == array.ctypes.data
        assert t.__numpy_dtype__ is kind
    room.flags.writeable = False
    t = m.from_dlpack(room)
    assert t.readonly and not t.numpy().flags.writeable
assert m.zeros(3, "bfloat16").numpy().dtype == ml_dtypes.bfloat16
refused(BufferError, np.from_dlpack, m.zeros(2, "int4"))  # of less than a byte
""", *NAMES)


@NEW
def test_a_dtype_that_a_program_registered_stays_so():
    program(START + """
own = np.dtype([("low", "u1"), ("high", "u1")])
np.dtypes.register_dlpack_dtype((4, 16), own)
t = m.from_dlpack(np.arange(3, dtype="u2")).view("bfloat16")
for turn in range(2):
    for back in t.numpy(), np.from_dlpack(t):
        assert back.dtype is own and back["low"].tolist() == [0, 1, 2]
        assert back.ctypes.data == t.data_ptr
    assert t.__numpy_dtype__ is own
    assert m.from_dlpack(back).dtype == "bfloat16" and m.from_dlpack(back).data_ptr == t.data_ptr
    assert "bfloat16" not in dlpack_rs.register_numpy_dtypes()
assert m.zeros(2, "float8_e5m2").numpy().dtype == ml_dtypes.float8_e5m2
""")


@NEW
def test_without_registration_arrays_are_those_of_ml_dtypes():
    program(START + """
for name in sys.argv[1:]:
    t = m.zeros(3, name)
    assert t.numpy().dtype == t.__numpy_dtype__ == getattr(ml_dtypes, name)
    assert t.numpy().ctypes.data == t.data_ptr
""", *NAMES)


@pytest.mark.skipif(not OLD, reason="this NumPy has a register of dtypes")
def test_an_older_numpy_is_named():
    with pytest.raises(ImportError, match=f"NumPy 2.5 or newer.*{np.__version__}"):
        dlpack_rs.register_numpy_dtypes()


def test_a_package_that_lacks_is_named():
    for name in "numpy", "ml_dtypes":
        program("""
import sys
import dlpack_rs
sys.modules[sys.argv[1]] = None
try:
    dlpack_rs.register_numpy_dtypes()
except ImportError as error:
    assert "install NumPy 2.5 or newer and ml_dtypes" in str(error), error
else:
    raise AssertionError
""", name)
