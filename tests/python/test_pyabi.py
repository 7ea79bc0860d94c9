"""The Python functions of the C ABI against NumPy and fake producers."""

import array
import ctypes
import gc
import itertools
import mmap
import sys
import threading
import weakref
from ctypes import byref, c_void_p, py_object, pythonapi

import numpy as np
import pytest

import pyabi
from dlpack_rs import abi
from fakes import (NEW, WITHOUT_CUDA, Fake, Interface, Table, device_tensor, hands_out, ones,
                   with_table)
from pyabi import capsule, consume, export, import_, legacy_capsule

CAPSULE_NAME = ctypes.PYFUNCTYPE(ctypes.c_char_p, py_object)(("PyCapsule_GetName", pythonapi))
SET_NAME = ctypes.PYFUNCTYPE(ctypes.c_int, py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", pythonapi))
SET_DESTRUCTOR = ctypes.PYFUNCTYPE(ctypes.c_int, py_object, c_void_p)(
    ("PyCapsule_SetDestructor", pythonapi))
GET_POINTER = ctypes.PYFUNCTYPE(c_void_p, py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", pythonapi))


class Watched(np.ndarray):
    """An array with weak references: `watch(a)` is None after it was freed."""


def watched():
    a = ones().view(Watched)
    return a, weakref.ref(a)


# --- Import -----------------------------------------------------------------------------------


def test_read_only_memory_is_copied_where_it_is_to_be_written():
    frozen = ones()
    frozen.flags.writeable = False
    assert import_(frozen).flags == 1
    with pytest.raises(BufferError, match="READ_ONLY"):
        import_(frozen, copy=-1, writable=1)
    assert import_(frozen, writable=1).flags == 2


@pytest.mark.parametrize("takes", [takes for count in range(5)
                                   for takes in itertools.combinations(NEW, count)], ids=str)
def test_fewer_keywords_are_tried_until_the_object_takes_them(takes):
    rows = [{"max_version": (1, 3)}, {}]
    demanding = {"max_version": (1, 3), "dl_device": (1, 0), "copy": False}
    for asked, wanted in (rows, {}), ([demanding, *rows], {"dl_device": (1, 0), "copy": -1}):
        fake = Fake(takes)
        t = import_(fake, **wanted)
        last = next(i for i, row in enumerate(asked) if set(row) <= set(takes))
        assert fake.calls == asked[:last + 1]
        assert t.flags == ("max_version" not in takes)  # legacy counts as read-only
        assert import_(fake, pyabi.LEGACY_WRITABLE, **wanted).flags == 0


def test_copy_is_made_once():
    made = []

    def give(**_):
        capsule = ones().__dlpack__(max_version=(1, 3), copy=True)
        made.append(abi.capsule.managed(capsule).dl_tensor.data)
        return capsule

    copies = Fake(NEW, give)
    for copy in (0, 1):
        taken = import_(copies, copy=copy)
        assert (taken.flags, taken.address) == (2, made[-1])
    with pytest.raises(BufferError, match="producer made a copy"):
        import_(copies, copy=-1)
    a = ones()
    t = import_(a, copy=1)
    assert t.flags == 2 and t.address != a.ctypes.data


def test_major_two_is_left_in_its_capsule():
    a, alive = watched()
    t = import_(a)
    del a
    out = capsule(t)
    pointer = ctypes.cast(GET_POINTER(out, b"dltensor_versioned"), pyabi.Versioned)
    pointer.contents.version.major = 2
    with pytest.raises(BufferError, match="major version is not 1"):
        consume(out)
    assert CAPSULE_NAME(out) == b"dltensor_versioned" and alive() is not None
    del out
    assert alive() is None


def test_a_legacy_capsule_that_cannot_be_converted_keeps_its_tensor():
    a, alive = watched()
    out = legacy_capsule(import_(a))
    del a
    tensor = ctypes.cast(GET_POINTER(out, b"dltensor"), pyabi.Legacy).contents.dl_tensor
    tensor.ndim = 65
    with pytest.raises(ValueError, match="NDIM"):
        consume(out)
    assert CAPSULE_NAME(out) == b"dltensor" and alive() is not None
    tensor.ndim = 2
    taken = consume(out)
    assert CAPSULE_NAME(out) == b"used_dltensor" and taken.shape == (2, 3)
    del out, taken
    assert alive() is None


# --- Exchange API ------------------------------------------------------------------------------


def test_tables_of_any_version():
    good = Table(hands_out)
    obj = with_table(good)
    assert np.array_equal(np.from_dlpack(import_(obj)), ones()) and not obj.calls
    newer = Table(hands_out, major=2, previous=good)
    assert np.array_equal(np.from_dlpack(import_(with_table(newer))), ones())
    # Only another major, a cycle, a gap: `__dlpack__` is called.
    cycle = Table(hands_out, major=2)
    cycle.table.header.prev_api = ctypes.pointer(cycle.table.header)
    for table in (Table(hands_out, major=2), cycle, Table(hands_out, holes=[1]),
                  Table(hands_out, holes=[0])):
        obj = with_table(table)
        import_(obj)
        assert len(obj.calls) == 1
    import_(with_table(Table(hands_out, holes=[3])))  # this one may be missing
    for other in (7, "text", ones().__dlpack__()):
        obj = type("Odd", (Fake,), {"__dlpack_c_exchange_api__": other})(NEW)
        import_(obj)
        assert len(obj.calls) == 1
    # Only the type's table is used.
    obj = Fake(NEW)
    obj.__dlpack_c_exchange_api__ = good.capsule
    import_(obj)
    assert len(obj.calls) == 1


def failing(raised):
    """An object of a type whose table fails: without an exception, or with this one. A C function
    sets it, as PyObject_Size does with the exception of `__len__`."""
    obj = with_table(Table(lambda obj, out: -1))
    if raised:
        def fails(_):
            raise raised
        type(obj).__len__ = fails
        size = ctypes.cast(pythonapi.PyObject_Size, c_void_p)
        type(obj).table.table.managed_tensor_from_py_object_no_sync = size
    return obj


@pytest.mark.parametrize("raised", [None, RuntimeError("of its inside"), MemoryError("mine")])
def test_an_exchange_api_that_fails(raised):
    """`__dlpack__` is called for its reason; where there is none, the table's error remains."""
    obj = failing(raised)
    assert np.array_equal(np.from_dlpack(import_(obj)), ones()) and len(obj.calls) == 1

    def refuse(**_):
        raise BufferError("sparse")

    obj = failing(raised)
    obj.make = refuse
    with pytest.raises(BufferError, match="sparse"):
        import_(obj)
    names = ("__dlpack_c_exchange_api__", "table", "__len__")
    members = {name: vars(type(obj))[name] for name in names if name in vars(type(obj))}
    alone = type("Alone", (), members)()
    with pytest.raises(type(raised or RuntimeError()), match=str(raised or "without an exception")):
        import_(alone)
    nothing = Table(lambda *_: 0)  # success, and no tensor
    with pytest.raises(RuntimeError, match="without an exception"):
        import_(type("Nothing", (), {"__dlpack_c_exchange_api__": nothing.capsule})())


def test_an_exchange_api_that_is_interrupted():
    with pytest.raises(KeyboardInterrupt, match="now"):
        import_(failing(KeyboardInterrupt("now")))


# --- Buffers and array interfaces ---------------------------------------------------------------


@pytest.mark.parametrize("source", [
    b"bytes", bytearray(b"bytes"), array.array("d", [1, 2, 3]), array.array("l", [1, -2]),
    memoryview(b"abcdef")[::-2], (ctypes.c_int16 * 3)(1, 2, 3), (ctypes.c_double * 2 * 3)(),
    memoryview(b"abcdefgh").cast("B", (2, 4)), array.array("B"), memoryview(b"abcd").cast("?"),
    memoryview(ones()), mmap.mmap(-1, 4096),
], ids=lambda s: type(s).__name__)
def test_buffers(source):
    view = np.asarray(memoryview(source))
    if view.dtype.kind == "S":
        view = view.view(np.uint8)
    t = import_(source)
    assert t.shape == view.shape
    back = np.from_dlpack(t)
    assert back.dtype == view.dtype and np.array_equal(back, view)
    assert bool(t.flags & 1) == memoryview(source).readonly
    del back


def test_a_buffer_is_released():
    source = bytearray(8)
    t = import_(source)
    with pytest.raises(BufferError):
        source.append(0)
    # On a thread without a Python thread state: CDLL releases the GIL before the call.
    thread = threading.Thread(target=abi.lib.dlrs_release, args=(t.take(),))
    thread.start()
    thread.join()
    source.append(0)


class Structured(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int8), ("b", ctypes.c_float)]


@pytest.mark.parametrize("source", [
    (Structured * 2)(), (ctypes.c_longdouble * 2)(), (ctypes.c_char_p * 2)(), (ctypes.c_wchar * 3)(),
    (ctypes.c_float.__ctype_be__ * 2)() if sys.byteorder == "little" else
    (ctypes.c_float.__ctype_le__ * 2)(),
], ids=repr)
def test_buffers_that_are_no_tensors(source):
    before = sys.getrefcount(source)
    with pytest.raises(BufferError, match="buffer"):
        import_(source)
    assert sys.getrefcount(source) == before


@pytest.mark.parametrize("changes, error", [
    ({"mask": 1}, BufferError), ({"data": None}, BufferError), ({"typestr": None}, BufferError),
    ({"shape": None}, BufferError), ({"shape": 7}, TypeError), ({"shape": (-1, 3)}, ValueError),
    ({"shape": (1,) * 65}, BufferError), ({"strides": (4,)}, BufferError),
    ({"strides": (3, 4)}, BufferError), ({"shape": ("x", 3)}, TypeError),
    ({"shape": (2**70, 3)}, OverflowError), ({"data": (0, False)}, ValueError),
    ({"shape": (2**40, 2**40)}, ValueError),
    # A buffer holds the data: its bytes are not an address, and these are too few.
    ({"data": array.array("Q", [4096, 0])}, ValueError), ({"data": memoryview(b"ab")}, ValueError),
    ({"data": (2**64, False)}, OverflowError),
    ({"data": (-1, False)}, OverflowError), ({"data": ("0", False)}, TypeError),
    ({"data": (4096,)}, BufferError), ({"data": ()}, BufferError),
    ({"data": (1, 2, 3)}, BufferError), ({"data": "ab"}, TypeError),
])
def test_inconsistent_array_interfaces(changes, error):
    obj = Interface(ones(), **changes)
    before = sys.getrefcount(obj)
    with pytest.raises(error):
        import_(obj)
    assert sys.getrefcount(obj) == before


@WITHOUT_CUDA
def test_cuda_memory_needs_a_driver():
    with pytest.raises(BufferError):
        import_(Interface(ones(), "__cuda_array_interface__", stream=1))
    empty = Interface(np.zeros((0, 3)), "__cuda_array_interface__", data=(0, False))
    assert import_(empty).device == (2, 0)


# --- Export -------------------------------------------------------------------------------------


def test_export_copies_and_devices():
    t = import_(ones().T)
    shared = consume(export(t, max_version=(1, 3), copy=False, dl_device=(1, 0)))
    assert shared.address == t.address and t.ref_count() == 2
    copied = consume(export(t, max_version=(1, 3), copy=True, dl_device=(1, 0)))
    assert copied.address != t.address and copied.flags == 2
    assert copied.strides == t.strides  # in the order of the strides
    assert np.array_equal(np.from_dlpack(copied), ones().T)
    for device in ((16, 0), (99, 0), (1, 1)):
        with pytest.raises((BufferError, ValueError)):
            export(t, dl_device=device)
    with pytest.raises(BufferError):
        export(t, dl_device=(16, 0), copy=False)
    export(t, stream=-1)
    for stream in (0, 1, 2**40):
        with pytest.raises(RuntimeError, match="stream None"):
            export(t, stream=stream)
    with pytest.raises(TypeError):
        export(t, stream="1")
    with pytest.raises(OverflowError):
        export(t, stream=2**70)


def test_export_is_for_tensors_of_this_library():
    a = ones().__dlpack__(max_version=(1, 0))
    t = consume(a)  # NumPy's own struct
    with pytest.raises(BufferError, match="FOREIGN"):
        export(t, max_version=(1, 0))


# --- Capsules -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [capsule, legacy_capsule])
@pytest.mark.parametrize("fate", ["dropped", "renamed", "destructor", "borrowed", "consumed"])
def test_consumed_and_unconsumed_capsules(make, fate):
    a, alive = watched()
    t = import_(a)
    del a
    out = make(t)
    assert t.versioned is None
    name = CAPSULE_NAME(out)
    if fate == "renamed":  # by a consumer with other capsule names
        pointer = GET_POINTER(out, name)
        SET_NAME(out, b"mine")
    elif fate == "destructor":  # MLX: keeps the name, clears the destructor
        pointer = GET_POINTER(out, name)
        SET_DESTRUCTOR(out, None)
    elif fate == "borrowed":  # mpi4py: only reads it
        assert GET_POINTER(out, name)
    elif fate == "consumed":
        taken = consume(out, 0)
        del out
        assert alive() is not None and np.array_equal(np.from_dlpack(taken), ones())
        del taken
        assert alive() is None
        return
    del out
    if fate in ("renamed", "destructor"):
        assert alive() is not None
        kind = pyabi.Versioned if name.endswith(b"versioned") else pyabi.Legacy
        release = abi.lib.dlrs_release if kind is pyabi.Versioned else abi.lib.dlrs_release_legacy
        release(ctypes.cast(pointer, kind))
    assert alive() is None


@pytest.mark.parametrize("make", [capsule, legacy_capsule])
def test_a_capsule_is_freed_with_a_pending_exception(make):
    seen = []

    class Noisy(np.ndarray):
        def __del__(self):
            seen.append(len(seen))
            try:
                {}["key"]
            except KeyError:
                pass

    def use(_, number):
        return number

    for _ in range(100):
        t = import_(ones().view(Noisy))
        with pytest.raises(ZeroDivisionError):
            use(make(t), 1 / 0)
    assert len(seen) == 100


def twin_of(keeper):
    twin = pyabi.Versioned()
    abi.call(abi.lib.dlrs_retain, keeper.versioned, byref(twin))
    return pyabi.Tensor(twin)


def test_consumers_that_delete_and_leave_the_name_or_clear_the_destructor():
    """TensorFlow of a device that it does not have, and JAX and nanobind: of more capsules than
    there are tickets, too."""
    keeper = device_tensor()
    for most in (0, 1, 3000):
        taken = []
        for _ in range(most):
            out = legacy_capsule(twin_of(keeper))
            taken.append(ctypes.cast(GET_POINTER(out, b"dltensor"), pyabi.Legacy))
            SET_NAME(out, b"used_dltensor")
            SET_DESTRUCTOR(out, None)
            del out
        assert keeper.ref_count() == 1 + most
        for tensor in taken:
            abi.lib.dlrs_release_legacy(tensor)
        for fate in ("left", "deleted", "consumed"):
            out = legacy_capsule(twin_of(keeper))
            assert keeper.ref_count() == 2
            if fate == "deleted":
                pointer = GET_POINTER(out, b"dltensor")
                abi.lib.dlrs_release_legacy(ctypes.cast(pointer, pyabi.Legacy))
            elif fate == "consumed":
                taken = consume(out, 0)
                del out
                assert keeper.ref_count() == 2 and taken.device == (2, 0)
                del taken
            out = None
            assert keeper.ref_count() == 1


@WITHOUT_CUDA
def test_streams_of_a_device_without_driver():
    t = device_tensor()
    assert consume(export(t, stream=-1, max_version=(1, 0))).device == (2, 0)
    for stream in (None, 1):  # the default stream itself writes the data
        assert consume(export(t, stream=stream, max_version=(1, 0))).device == (2, 0)
    for stream in (2, 0x1000):
        with pytest.raises(BufferError):
            export(t, stream=stream, max_version=(1, 0))
    with pytest.raises(RuntimeError, match="ambiguous"):
        export(t, stream=0)
    assert t.ref_count() == 1


def test_a_foreign_tensor_without_context_is_boxed():
    a = ones()
    t = consume(a.__dlpack__(max_version=(1, 0)))
    t.struct.manager_ctx, kept = None, t.struct.manager_ctx
    original = ctypes.cast(ctypes.addressof(t.struct), pyabi.Versioned)
    out = capsule(t)
    boxed = ctypes.cast(GET_POINTER(out, b"dltensor_versioned"), pyabi.Versioned)
    assert boxed.contents.manager_ctx and boxed.contents.deleter
    original.contents.manager_ctx = kept  # NumPy's deleter needs it
    del out


# --- The right to call Python -------------------------------------------------------------------


def test_calls_without_the_gil_fail():
    # CDLL releases the GIL before the call: the most frequent mistake with ctypes.
    error = abi.dlrs_error(struct_size=ctypes.sizeof(abi.dlrs_error))
    out = pyabi.Versioned()
    assert abi.lib.dlrs_py_import(id(array), None, byref(out), byref(error)) == abi.DLRS_UNSUPPORTED
    assert b"PyDLL" in error.message and not out


STATUSES = {value: name for name, value in vars(abi).items()
            if isinstance(value, int) and abi.lib.dlrs_status_name(value) == name.encode()}


def kind_of(name, status):
    """The exception for a status: BufferError where the exchange is not possible as requested."""
    single = {"DEVICE_TYPE": BufferError, "DEVICE_ID": BufferError, "SHAPE_MISMATCH": ValueError,
              "VERSION": BufferError, "FLAGS": BufferError, "DTYPE_CODE": BufferError,
              "DTYPE_BITS": BufferError, "DTYPE_LANES": BufferError, "STRIDES_UNEVEN": BufferError,
              "NOT_VIEWABLE": ValueError, "DTYPE_MISMATCH": TypeError, "CALLBACK": RuntimeError}
    classes = {1: ValueError, 2: ValueError, 3: BufferError, 4: MemoryError, 5: BufferError,
               6: RuntimeError, 9: RuntimeError}
    return single.get(name.removeprefix("DLRS_"), classes.get(status // 100))


@pytest.mark.parametrize("status", [status for status in STATUSES if status])
def test_all_interfaces_raise_the_same_exception(status):
    kind = kind_of(STATUSES[status], status)
    error = abi.dlrs_error(struct_size=ctypes.sizeof(abi.dlrs_error), status=status,
                              message=b"words")
    with pytest.raises(kind, match="words") as caught:
        pyabi.lib.dlrs_py_error_set_as(byref(error), None, None)
    assert type(caught.value) is kind is abi.exception_of(status)

    def fails(out):
        ctypes.pointer(out._obj)[0] = error
        return status

    with pytest.raises(kind, match="words") as caught:
        abi.call(fails)
    assert type(caught.value) is kind and caught.value.name == STATUSES[status]


def test_every_status_is_covered():
    assert len(STATUSES) == 55 and STATUSES[0] == "DLRS_OK"


def test_garbage_collection_during_exchanges():
    old = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(200):
            a, alive = watched()
            cycle = [import_(a)]
            cycle.append(cycle)
            cycle.append(export(cycle[0], max_version=(1, 0)))
            del a
            del cycle
            gc.collect()
            assert alive() is None
    finally:
        gc.set_threshold(*old)
