"""Devices and streams of the Python functions: a test backend for CUDA, in host memory."""

import ctypes
from ctypes import CFUNCTYPE, POINTER, byref, c_int32, c_int64, c_uint64, c_void_p, memmove

import numpy as np
import pytest

import pyabi
from dlpack_rs import abi
from dlpack_rs.abi import DLDevice, dlrs_backend, dlrs_byte_plan
from pyabi import consume, export, import_
from test_pyabi import Fake, Interface, Table, NEW, device_tensor, ones, with_table

CUDA = 2


# Every function has a context first and a fault last; a device is one value.
FUNCTIONS = {name: CFUNCTYPE(c_int32, c_void_p, *parameters, c_void_p) for name, parameters in {
    "device_count": (c_int32, POINTER(c_int32)),
    "alloc": (DLDevice, c_uint64, c_uint64, c_void_p, POINTER(c_void_p)),
    "free": (DLDevice, c_void_p, c_uint64, c_uint64, c_void_p),
    "copy": (DLDevice, POINTER(dlrs_byte_plan), c_void_p),
    "stream_sync": (DLDevice, c_void_p),
    "event_create": (DLDevice, POINTER(c_void_p)),
    "event_destroy": (DLDevice, c_void_p),
    "event_record": (DLDevice, c_void_p, c_void_p),
    "event_wait": (DLDevice, c_void_p, c_void_p),
    "event_sync": (DLDevice, c_void_p),
    "pointer": (c_void_p, POINTER(DLDevice), POINTER(c_void_p), POINTER(c_uint64)),
}.items()}


class Driver:
    """Records its calls, in order; copies at once."""

    def __init__(self):
        self.log, self.memory = [], {}
        members = {"struct_size": ctypes.sizeof(dlrs_backend), "name": b"fake"}
        self.kept = [kind(getattr(self, name)) for name, kind in FUNCTIONS.items()]
        for name, function in zip(FUNCTIONS, self.kept):
            members[name] = ctypes.cast(function, c_void_p)
        self.table = dlrs_backend(**members)

    def device_count(self, context, kind, out, fault):
        out[0] = 2
        return 0

    def alloc(self, context, device, nbytes, align, stream, out, fault):
        memory = ctypes.create_string_buffer(nbytes + align)
        address = (ctypes.addressof(memory) + align - 1) & ~(align - 1)
        self.memory[address], out[0] = memory, address
        return 0

    def free(self, context, device, data, nbytes, align, stream, fault):
        del self.memory[data]
        return 0

    def copy(self, context, device, plan, stream, fault):
        plan = plan.contents
        self.log.append(("copy", plan.src_device.device_type, plan.dst_device.device_type, stream))
        if plan.ndim:
            return abi.DLRS_UNSUPPORTED
        memmove(plan.dst, plan.src, plan.item_nbytes)
        return 0

    def stream_sync(self, context, device, stream, fault):
        return 0

    def event_create(self, context, device, out, fault):
        out[0] = 0x77
        return 0

    def event_destroy(self, context, device, event, fault):
        return 0

    def event_record(self, context, device, event, stream, fault):
        self.log.append(("record", stream))
        return 0

    def event_wait(self, context, device, event, stream, fault):
        self.log.append(("wait", stream))
        return 0

    def event_sync(self, context, device, event, fault):
        self.log.append(("sync", event))
        return 0

    def pointer(self, context, data, device, base, nbytes, fault):
        device[0] = DLDevice(CUDA, 1)
        return 0


@pytest.fixture
def driver():
    driver = Driver()
    function = abi.lib.dlrs_backend_set
    abi.call(function, CUDA, byref(driver.table), None)
    yield driver
    abi.call(function, CUDA, None, None)
    assert not driver.memory


def on_device(array, device=(CUDA, 0)):
    """A tensor of the test backend over NumPy's memory."""
    shape = (c_int64 * array.ndim)(*array.shape)
    bare = abi.DLTensor(data=array.ctypes.data, device=DLDevice(*device), ndim=array.ndim,
                           dtype=abi.DLDataType(2, 32, 1), shape=shape)
    out = pyabi.Versioned()
    abi.call(abi.lib.dlrs_tensor_wrap, byref(bare), 0, None, None, byref(out))
    return pyabi.Tensor(out)


@pytest.mark.parametrize("stream, log", [
    (None, []), (1, []), (-1, []),
    (2, [("record", None), ("wait", 2)]),
    (0x1000, [("record", None), ("wait", 0x1000)]),
])
def test_the_consumers_stream_waits(driver, stream, log):
    t = device_tensor()
    assert consume(export(t, stream=stream, max_version=(1, 3))).device == (CUDA, 0)
    assert driver.log == log


@pytest.mark.parametrize("stream, log", [
    (0x2000, []), (-1, []),
    (None, [("record", 0x2000), ("wait", 1)]),
    (2, [("record", 0x2000), ("wait", 2)]),
])
def test_the_consumer_waits_for_the_work_stream(driver, stream, log):
    t, out = device_tensor(), c_void_p()
    request = abi.dlrs_py_request(ctypes.sizeof(abi.dlrs_py_request), None if stream is None else id(stream),
                            work_stream=0x2000)
    pyabi.call(pyabi.lib.dlrs_py_export, t.versioned, byref(request), byref(out))
    assert consume(pyabi._object(out)).device == (CUDA, 0)
    assert driver.log == log


@pytest.mark.parametrize("stream, log", [
    (-1, []), (None, [("wait", 1)]), (2, [("wait", 2)]), (0x2000, [("wait", 0x2000)]), (0x3000, [("wait", 0x3000)]),
])
def test_a_readiness_record_replaces_the_work_stream(driver, stream, log):
    t, out = on_device(ones()), c_void_p()
    abi.call(abi.lib.dlrs_ready_record, t.versioned, 0x3000)
    assert driver.log == [("record", 0x3000)]
    driver.log.clear()
    request = abi.dlrs_py_request(ctypes.sizeof(abi.dlrs_py_request), None if stream is None else id(stream),
                                  work_stream=0x2000)
    pyabi.call(pyabi.lib.dlrs_py_export, t.versioned, byref(request), byref(out))
    assert consume(pyabi._object(out)).device == (CUDA, 0)
    assert driver.log == log


def test_a_copy_for_a_consumer_waits_for_the_readiness_record(driver):
    a = ones()
    t = on_device(a)
    abi.call(abi.lib.dlrs_ready_record, t.versioned, 0x3000)
    driver.log.clear()
    host = consume(export(t, dl_device=(1, 0), max_version=(1, 0)))
    assert host.device == (1, 0) and np.array_equal(np.from_dlpack(host), a)
    assert driver.log == [("wait", None), ("copy", CUDA, 1, None)]


@pytest.mark.parametrize("recorded", [False, True])
def test_pinned_memory_waits_for_a_readiness_record(driver, recorded):
    abi.call(abi.lib.dlrs_backend_set, 3, byref(driver.table), None)
    t = on_device(ones(), (3, 0))
    if recorded:
        abi.call(abi.lib.dlrs_ready_record, t.versioned, 0x3000)
    driver.log.clear()
    assert consume(export(t, max_version=(1, 3))).device == (3, 0)
    assert driver.log == [("sync", 0x77)] * recorded
    del t
    abi.call(abi.lib.dlrs_backend_set, 3, None, None)


@pytest.mark.parametrize("stream", [None, -1, 1, 2, 0x1000])
def test_the_stream_of_a_copy_in_memory_of_the_host_is_the_devices(driver, stream):
    """dlpack#152: it counts as a stream of the data's device; the copy is done at the export."""
    a = ones()
    host = consume(export(on_device(a), stream=stream, dl_device=(1, 0), max_version=(1, 3)))
    assert host.device == (1, 0) and np.array_equal(np.from_dlpack(host), a)
    assert driver.log == [("copy", CUDA, 1, None)]


def test_invalid_stream_numbers(driver):
    for stream, device in [(0, (1, 0)), (-2, (1, 0)), (0, (CUDA, 0))]:
        with pytest.raises(RuntimeError, match="STREAM"):
            export(on_device(ones()), stream=stream, dl_device=device, max_version=(1, 3))
    for stream in (1, 0x1000):  # host memory has none
        with pytest.raises(RuntimeError, match="STREAM"):
            export(consume(export(on_device(ones()), dl_device=(1, 0), max_version=(1, 3))), stream=stream,
                   dl_device=(1, 0), copy=True)
    assert len(driver.log) == 2


def test_export_to_the_cpu_and_back(driver):
    a = ones()
    t = on_device(a)
    with pytest.raises(BufferError, match="COPY_NEEDED"):
        export(t, dl_device=(1, 0), copy=False)
    host = consume(export(t, dl_device=(1, 0), max_version=(1, 0)))
    assert host.device == (1, 0) and host.flags == 2
    assert np.array_equal(np.from_dlpack(host), a)
    again = consume(export(host, dl_device=(CUDA, 0), max_version=(1, 0)))
    assert again.device == (CUDA, 0) and again.address in driver.memory
    back = import_(again, dl_device=(1, 0))
    assert np.array_equal(np.from_dlpack(back), a)
    assert np.array_equal(np.from_dlpack(t, device="cpu"), a)
    del again


def test_import_copies_to_the_cpu_if_the_producer_does_not(driver):
    a = ones()
    t = on_device(a)
    old = Fake((), lambda **k: export(t))  # supports neither dl_device nor versions
    assert np.array_equal(np.from_dlpack(import_(old, dl_device=(1, 0))), a)
    with pytest.raises(BufferError, match="another device"):
        import_(old, dl_device=(1, 0), copy=-1)
    there = import_(Fake(NEW, lambda **k: a.__dlpack__(max_version=(1, 0))), dl_device=(CUDA, 0))
    assert there.device == (CUDA, 0) and there.flags == 2


def on_stream(stream):
    """A framework whose tensors are on a device, and whose work is on a stream."""
    def hands_out(obj, out):
        taken = ctypes.cast(device_tensor().take(), c_void_p)
        c_void_p.from_address(out).value = taken.value
        return 0

    def current(kind, ordinal, out):
        c_void_p.from_address(out).value = stream
        return 0

    table = Table(hands_out)
    table.current = ctypes.PYFUNCTYPE(ctypes.c_int, c_int32, c_int32, c_void_p)(current)
    table.table.current_work_stream = ctypes.cast(table.current, c_void_p)
    return with_table(table)


@pytest.mark.parametrize("producer, consumer, log", [
    (0, 0, []), (1, 0, []), (0x1000, 0x1000, []),
    (0x1000, 0, [("record", 0x1000), ("wait", 1)]),
    (0, 0x2000, [("record", None), ("wait", 0x2000)]),
    (0x1000, -1, []),
])
def test_the_exchange_api_orders_streams(driver, producer, consumer, log):
    obj = on_stream(producer)
    assert import_(obj, stream=consumer).device == (CUDA, 0)
    assert driver.log == log and not obj.calls


def test_without_streams_dlpack_is_called():
    obj = on_stream(0x1000)
    assert import_(obj).device == (1, 0) and len(obj.calls) == 1


@pytest.mark.parametrize("stream, log", [
    (None, []), (1, []), (2, [("record", 2), ("wait", 1)]),
    (0x1000, [("record", 0x1000), ("wait", 1)]),
])
def test_cuda_array_interface(driver, stream, log):
    obj = Interface(ones(), "__cuda_array_interface__", stream=stream, version=3)
    t = import_(obj)
    assert t.device == (CUDA, 1)  # as the driver reports
    assert t.shape == (2, 3) and driver.log == log
    with pytest.raises(RuntimeError, match="ambiguous"):
        import_(Interface(ones(), "__cuda_array_interface__", stream=0))


class Said(Fake):
    """A producer that reports its data's device, and exports one of the test CUDA or the CPU."""

    def __init__(self, device, takes=NEW, make=None):
        super().__init__(takes, make or (lambda **k: export(device_tensor(), max_version=(1, 3))))
        self.device = device

    def __dlpack_device__(self):
        return self.device


@pytest.mark.parametrize("device, wanted, named", [
    ((CUDA, 0), (0, 0), True), ((13, 0), (0, 0), True), ((3, 0), (0, 0), False), ((1, 0), (0, 0), False),
    ((CUDA, 0), (1, 0), False), ((CUDA, 0), (3, 0), False), ((CUDA, 0), (CUDA, 0), True),
    ((1, 0), (CUDA, 0), True), ((CUDA, 1), (CUDA, 0), True), ((3, 0), (CUDA, 0), True),
])
def test_a_stream_belongs_to_the_target_device(driver, device, wanted, named):
    host = wanted[0] in (1, 3) or wanted[0] == 0 and device[0] in (1, 3)
    obj = Said(device, make=(lambda **k: ones().__dlpack__(max_version=(1, 3))) if host else None)
    import_(obj, stream=0x1000, dl_device=wanted if wanted[0] != 3 else (1, 0))
    assert ("stream" in obj.calls[0]) == named and len(obj.calls) == 1


@pytest.mark.parametrize("wanted, names", [((CUDA, 0), [True, True]), ((CUDA, 1), [True, False])])
def test_an_older_producer_gets_no_stream_of_another_device(driver, wanted, names):
    a = ones()
    t = on_device(a)
    obj = Said((CUDA, 0), ("stream", "max_version"), lambda **k: export(t, max_version=(1, 3)))
    import_(obj, stream=0x1000, dl_device=wanted)
    assert ["stream" in call for call in obj.calls] == names


@pytest.mark.parametrize("stream, log", [
    (0, []), (1, []), (-1, []), (0x1000, [("record", None), ("wait", 0x1000)]),
])
def test_producers_without_a_stream_are_waited_for(driver, stream, log):
    mute = type("Mute", (Fake,), {"__dlpack_device__": property(lambda self: self.missing)})
    for obj in (export(device_tensor(), max_version=(1, 3)),
                mute(NEW, lambda **k: export(device_tensor(), max_version=(1, 3)))):
        driver.log.clear()
        assert import_(obj, stream=stream).device == (CUDA, 0)
        assert driver.log == log


def test_the_librarys_copy_runs_on_the_stream(driver):
    a = ones()
    t = on_device(a)
    copy = import_(Said((CUDA, 0), make=lambda **k: export(t, max_version=(1, 3))), stream=0x1000, copy=1)
    assert copy.device == (CUDA, 0) and driver.log == [("copy", CUDA, CUDA, 0x1000)]
    driver.log.clear()
    back = import_(Said((CUDA, 0), ("stream", "max_version"), lambda **k: export(t, max_version=(1, 3))),
                   dl_device=(1, 0))
    assert back.device == (1, 0) and driver.log == [("copy", CUDA, 1, None)]
    del copy


def test_managed_memory_by_the_exchange_api(driver):
    """The framework's stream is queried, and the consumer's waits for it."""
    abi.call(abi.lib.dlrs_backend_set, 13, byref(driver.table), None)
    try:
        asked = []

        def hands_out(obj, out):
            a = ones()
            shape = (c_int64 * 2)(2, 3)
            bare = abi.DLTensor(data=a.ctypes.data, device=DLDevice(13, 0), ndim=2,
                                dtype=abi.DLDataType(2, 32, 1), shape=shape)
            asked.append(a)
            made = pyabi.Versioned()
            abi.call(abi.lib.dlrs_tensor_wrap, byref(bare), 0, None, None, byref(made))
            c_void_p.from_address(out).value = ctypes.cast(made, c_void_p).value
            return 0

        def current(kind, ordinal, out):
            asked.append(kind)
            c_void_p.from_address(out).value = 0x3000
            return 0

        table = Table(hands_out)
        table.current = ctypes.PYFUNCTYPE(ctypes.c_int, c_int32, c_int32, c_void_p)(current)
        table.table.current_work_stream = ctypes.cast(table.current, c_void_p)
        assert import_(with_table(table), stream=0x1000).device == (13, 0)
        assert asked[1:] == [13] and driver.log == [("record", 0x3000), ("wait", 0x1000)]
    finally:
        abi.call(abi.lib.dlrs_backend_set, 13, None, None)
