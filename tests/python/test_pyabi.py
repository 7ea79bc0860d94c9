"""The Python functions of the C ABI against NumPy, tvm-ffi, array-api-strict and fake producers."""

import array
import ctypes
import gc
import mmap
import sys
import threading
import weakref
from ctypes import byref, c_void_p, py_object, pythonapi

import numpy as np
import pytest
import tvm_ffi

import py_module
import pyabi
from dlpack_rs import abi
from pyabi import capsule, consume, export, import_, legacy_capsule
from views import unaligned

CAPSULE_NAME = ctypes.PYFUNCTYPE(ctypes.c_char_p, py_object)(("PyCapsule_GetName", pythonapi))
SET_NAME = ctypes.PYFUNCTYPE(ctypes.c_int, py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", pythonapi))
SET_DESTRUCTOR = ctypes.PYFUNCTYPE(ctypes.c_int, py_object, c_void_p)(
    ("PyCapsule_SetDestructor", pythonapi))
GET_POINTER = ctypes.PYFUNCTYPE(c_void_p, py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", pythonapi))


def ones():
    return np.arange(6, dtype=np.float32).reshape(2, 3)


class Watched(np.ndarray):
    """An array with weak references: `watch(a)` is None after it was freed."""


def watched():
    a = ones().view(Watched)
    return a, weakref.ref(a)


# --- Import -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [
    lambda a: a[::2], lambda a: a[:, ::-1], lambda a: a.T, lambda a: a[1:1], lambda a: a[:, :0],
    lambda a: a[1, 2, ...], unaligned, lambda a: np.broadcast_to(a[0], (3, 3)),
])
def test_x12_layouts_and_read_only(make):
    source = make(ones())
    t = import_(source)
    assert t.flags == (0 if source.flags.writeable else 1)
    if source.size:
        assert t.strides == tuple(s // source.itemsize for s in source.strides)
    assert np.array_equal(np.from_dlpack(t), source)
    frozen = ones()
    frozen.flags.writeable = False
    assert import_(frozen).flags == 1
    with pytest.raises(BufferError, match="READ_ONLY"):
        import_(frozen, copy=-1, writable=1)
    assert import_(frozen, writable=1).flags == 2  # a copy


class Fake:
    """A producer whose `__dlpack__` accepts some keywords only, and which records its calls."""

    def __init__(self, takes, make=None):
        self.takes, self.calls = takes, []
        self.make = make or (lambda **k: ones().__dlpack__(**k))

    def __dlpack__(self, **keywords):
        self.calls.append(keywords)
        unknown = set(keywords) - set(self.takes)
        if unknown:
            raise TypeError(f"unexpected keyword {unknown}")
        return self.make(**{k: v for k, v in keywords.items() if k != "stream"})

    def __dlpack_device__(self):
        return 1, 0


NEW = ("stream", "max_version", "dl_device", "copy")


@pytest.mark.parametrize("takes, asked", [
    (NEW, [{"max_version": (1, 3)}]),
    (("stream", "max_version"), [{"max_version": (1, 3)}]),
    (("stream",), [{"max_version": (1, 3)}, {}]),
    ((), [{"max_version": (1, 3)}, {}]),
])
def test_keywords_by_default(takes, asked):
    fake = Fake(takes)
    t = import_(fake)
    assert fake.calls == asked
    assert t.flags == (0 if "max_version" in takes else 1)  # legacy counts as read-only
    assert np.array_equal(np.from_dlpack(t), ones())
    assert import_(fake, pyabi.LEGACY_WRITABLE).flags == 0


@pytest.mark.parametrize("takes, calls", [(NEW, 1), (("stream", "max_version"), 2), ((), 3)])
def test_keywords_of_a_demanding_consumer(takes, calls):
    fake = Fake(takes)
    t = import_(fake, dl_device=(1, 0), copy=-1)
    assert t.device == (1, 0)
    full = {"max_version": (1, 3), "dl_device": (1, 0), "copy": False}
    rows = [full, {"max_version": (1, 3)}, {}]
    assert fake.calls == rows[:calls]


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


def test_no_stream_is_passed_for_host_memory():
    fake = Fake(NEW)
    import_(fake, stream=0x1000)
    assert fake.calls == [{"max_version": (1, 3)}]
    fake.__class__ = type("OnDevice", (Fake,), {"__dlpack_device__": lambda self: (2, 0)})
    fake.calls.clear()
    import_(fake, stream=0x1000)
    assert fake.calls == [{"stream": 0x1000, "max_version": (1, 3)}]


@pytest.mark.parametrize("error", [ValueError, BufferError, KeyboardInterrupt, AttributeError,
                                   TypeError, SystemExit])
def test_exceptions_of_the_object_propagate(error):
    def fail(**_):
        raise error("mine")

    with pytest.raises(error, match="mine"):
        import_(Fake(NEW, fail))
    assert sys.exc_info() == (None, None, None)


def test_a_consumed_capsule():
    used = ones().__dlpack__(max_version=(1, 3))
    consume(used)
    with pytest.raises(ValueError, match="consumed before"):
        import_(Fake(NEW, lambda **_: used))
    with pytest.raises(ValueError, match="consumed before"):
        consume(used)
    # A capsule object may be imported, once.
    fresh = ones().__dlpack__()
    assert np.array_equal(np.from_dlpack(import_(fresh)), ones())
    with pytest.raises(ValueError, match="consumed before"):
        import_(fresh)


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


# --- Other frameworks -------------------------------------------------------------------------


def test_tvm_ffi_both_ways():
    source = import_(ones())
    made = tvm_ffi.from_dlpack(source)
    assert np.array_equal(np.from_dlpack(made), ones())
    for protocols in (0, 3, pyabi.NO_EXCHANGE_API):
        t = import_(made, protocols=protocols)
        assert t.address == source.address and t.shape == (2, 3)


class Table:
    """An exchange API in ctypes, with the mistakes that a framework might make."""

    FROM = ctypes.PYFUNCTYPE(ctypes.c_int, py_object, c_void_p)

    def __init__(self, function, major=1, previous=None, holes=()):
        self.function = self.FROM(function)
        self.table = abi.DLPackExchangeAPI()
        self.table.header.version.major = major
        self.table.header.version.minor = 3
        if previous:
            self.table.header.prev_api = ctypes.pointer(previous.table.header)
        for i, (name, _) in enumerate(self.table._fields_[1:]):
            if i not in holes:
                setattr(self.table, name, ctypes.cast(self.function, c_void_p))
        new = ctypes.PYFUNCTYPE(py_object, c_void_p, ctypes.c_char_p, c_void_p)(
            ("PyCapsule_New", pythonapi))
        self.name = b"dlpack_exchange_api"
        self.capsule = new(ctypes.addressof(self.table), self.name, None)


def with_table(table):
    members = {"__dlpack_c_exchange_api__": table.capsule, "table": table}
    return type("Framework", (Fake,), members)(NEW)


def hands_out(obj, out):
    taken = import_(ones()).take()
    c_void_p.from_address(out).value = ctypes.cast(taken, c_void_p).value
    return 0


def test_the_table_of_the_type_tensor():
    module = py_module.load()
    api = py_module.table(module)
    allocator = ctypes.cast(api.managed_tensor_allocator, c_void_p).value
    assert allocator == ctypes.cast(pyabi.lib.dlrs_managed_tensor_allocator, c_void_p).value
    streams = ctypes.cast(api.current_work_stream, c_void_p).value
    stream = c_void_p(1)
    current = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, c_void_p)(streams)
    assert current(abi.kDLCPU, 0, ctypes.addressof(stream)) == 0 and stream.value is None
    with pytest.raises(ValueError, match="out is NULL"):
        current(abi.kDLCPU, 0, None)
    t = import_(module.from_dlpack(ones()))
    assert np.array_equal(np.from_dlpack(t), ones())


def test_x05_tables():
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


class Interface:
    def __init__(self, array, name="__array_interface__", **changes):
        self.array = array
        setattr(self, name, {**array.__array_interface__, **changes})


def test_array_interfaces():
    for source in (ones(), ones().T, ones()[:, ::-1], np.zeros(()), np.zeros((2, 0))):
        t = import_(Interface(source))
        assert t.shape == source.shape
        assert np.array_equal(np.from_dlpack(t), source)
        assert np.array_equal(np.from_dlpack(import_(Interface(source, strides=source.strides))),
                              source)
    keeper, alive = watched()
    t = import_(Interface(keeper))
    del keeper
    assert alive() is not None
    del t
    assert alive() is None
    frozen = Interface(ones(), data=(ones().ctypes.data, True), shape=(0,), strides=None)
    assert import_(frozen).flags == 1


@pytest.mark.parametrize("changes, error", [
    ({"mask": 1}, BufferError), ({"data": None}, BufferError), ({"typestr": "<V4"}, BufferError),
    ({"typestr": ">f4"}, BufferError), ({"typestr": None}, BufferError), ({"typestr": 7}, TypeError),
    ({"shape": None}, BufferError), ({"shape": 7}, TypeError), ({"shape": (-1, 3)}, ValueError),
    ({"shape": (1,) * 65}, BufferError), ({"strides": (4,)}, BufferError),
    ({"strides": (3, 4)}, BufferError), ({"shape": ("x", 3)}, TypeError),
    ({"shape": (2**70, 3)}, OverflowError), ({"data": (0, False)}, ValueError),
    ({"shape": (2**40, 2**40)}, ValueError),
    # A buffer holds the data: its bytes are not an address, and these are too few.
    ({"data": b"ab"}, ValueError), ({"data": bytearray(b"a")}, ValueError),
    ({"data": array.array("Q", [4096, 0])}, ValueError), ({"data": memoryview(b"ab")}, ValueError),
    ({"data": bytes(24), "offset": 1}, ValueError), ({"data": bytes(24), "offset": -1}, ValueError),
    ({"data": bytes(24), "strides": (-12, 4)}, ValueError),
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


def cuda_devices():
    count, function = ctypes.c_int32(), abi.lib.dlrs_device_count
    return 0 if function(2, byref(count), None) else count.value


WITHOUT_CUDA = pytest.mark.skipif(cuda_devices() > 0, reason="there is a CUDA device")


@WITHOUT_CUDA
def test_cuda_memory_needs_a_driver():
    with pytest.raises(BufferError):
        import_(Interface(ones(), "__cuda_array_interface__", stream=1))
    empty = Interface(np.zeros((0, 3)), "__cuda_array_interface__", data=(0, False))
    assert import_(empty).device == (2, 0)


# --- Export -------------------------------------------------------------------------------------


def test_export_versions():
    t = import_(ones())
    for version, name in ((None, b"dltensor"), ((0, 8), b"dltensor"), ((1, 0), b"dltensor_versioned"),
                          ((1, 3), b"dltensor_versioned"), ((9, 9), b"dltensor_versioned"),
                          ([1, 0], b"dltensor_versioned"), ((-1, 0), b"dltensor")):
        assert CAPSULE_NAME(export(t, max_version=version)) == name
    assert t.ref_count() == 1
    for bad, error in (((1,), TypeError), ((1, 2, 3), TypeError), ("10", TypeError),
                       (1, TypeError), ((1, None), TypeError), ((2**40, 0), ValueError)):
        with pytest.raises(error):
            export(t, max_version=bad)
    out = c_void_p()
    pyabi.call(pyabi.lib.dlrs_py_export, t.versioned, None, byref(out))  # no request at all
    assert CAPSULE_NAME(pyabi._object(out)) == b"dltensor"
    assert t.ref_count() == 1


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
def test_x09_consumed_and_unconsumed_capsules(make, fate):
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


def device_tensor():
    """A tensor on a CUDA device that does not exist; its memory is never accessed."""
    shape = (ctypes.c_int64 * 1)(4)
    bare = abi.DLTensor(data=0x1000, device=abi.DLDevice(2, 0), ndim=1,
                           dtype=abi.DLDataType(2, 32, 1), shape=shape)
    out = pyabi.Versioned()
    abi.call(abi.lib.dlrs_tensor_wrap, byref(bare), 0, None, None, byref(out))
    return pyabi.Tensor(out)


def test_tensorflow_deletes_and_leaves_the_name():
    keeper = device_tensor()
    for deleted in (False, True):
        twin = pyabi.Versioned()
        abi.call(abi.lib.dlrs_retain, keeper.versioned, byref(twin))
        out = legacy_capsule(pyabi.Tensor(twin))
        assert keeper.ref_count() == 2
        if deleted:
            pointer = GET_POINTER(out, b"dltensor")
            abi.lib.dlrs_release_legacy(ctypes.cast(pointer, pyabi.Legacy))
        del out
        assert keeper.ref_count() == 1
    twin = pyabi.Versioned()
    abi.call(abi.lib.dlrs_retain, keeper.versioned, byref(twin))
    out = legacy_capsule(pyabi.Tensor(twin))
    taken = consume(out, 0)
    del out
    assert keeper.ref_count() == 2 and taken.device == (2, 0)
    del taken
    assert keeper.ref_count() == 1


def taken_as_by_jax(out):
    """The tensor of a capsule that the consumer renames and the producer never destroys, as with
    JAX and nanobind."""
    pointer = GET_POINTER(out, b"dltensor")
    SET_NAME(out, b"used_dltensor")
    SET_DESTRUCTOR(out, None)
    return ctypes.cast(pointer, pyabi.Legacy)


def test_jax_clears_the_destructor():
    keeper = device_tensor()
    for most in (1, 3000):
        taken = []
        for _ in range(most):
            twin = pyabi.Versioned()
            abi.call(abi.lib.dlrs_retain, keeper.versioned, byref(twin))
            taken.append(taken_as_by_jax(legacy_capsule(pyabi.Tensor(twin))))
        assert keeper.ref_count() == 1 + most
        for tensor in taken:
            abi.lib.dlrs_release_legacy(tensor)
        assert keeper.ref_count() == 1
        test_tensorflow_deletes_and_leaves_the_name()


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


def test_x06_calls_without_the_gil_fail():
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


# --- Threads, storms, leaks ---------------------------------------------------------------------


def test_x07_garbage_collection_during_exchanges():
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


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * mmap.PAGESIZE


def test_no_leak():
    """The numbers of references and the memory stay constant over many exchanges."""
    a, frozen, made = ones(), ones(), tvm_ffi.from_dlpack(ones())
    frozen.flags.writeable = False
    bad, buffer = np.zeros(2, object), array.array("d", [1, 2])
    legacy, interface, old = Fake(()), Interface(ones()), Fake(NEW)
    objects = [a, frozen, made, bad, buffer, legacy, interface]

    def exchange():
        for obj in objects:
            try:
                t = import_(obj)
            except BufferError:
                continue
            export(t, max_version=(1, 0))
            if not t.flags & 1:
                consume(export(t), 0)
            capsule(t)
        legacy.calls.clear()

    for _ in range(1000):
        exchange()
    gc.collect()
    before, references = resident(), [sys.getrefcount(obj) for obj in objects]
    for _ in range(5000):
        exchange()
    gc.collect()
    assert [sys.getrefcount(obj) for obj in objects] == references
    assert resident() - before < 1 << 20
    del old
