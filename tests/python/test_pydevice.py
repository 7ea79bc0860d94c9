"""Devices and streams of the Python functions: a test backend for CUDA, in host memory."""

import ctypes
from ctypes import byref, c_void_p, memmove

import numpy as np
import pytest

import pyabi
from dlpack_rs import abi
from dlpack_rs.abi import DLDevice
from fakes import NEW, Fake, Interface, Table, device_tensor, hands_out, ones, with_table, wrapped
from pyabi import consume, export, import_

CUDA = 2
HERE = CUDA, 0


class Driver:
    """Records its calls, in order; copies at once."""

    def __init__(self):
        self.log, self.memory = [], {}
        functions = {name: getattr(abi, f"dlrs_backend_{name}_fn")(getattr(self, name))
                     for name in vars(Driver) if name[0] != "_"}
        self.kept = functions
        self.table = abi.DLRS_INIT(abi.dlrs_backend, name=b"fake", **{
            name: ctypes.cast(function, c_void_p) for name, function in functions.items()})

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

    def stream_sync(self, context, device, of, fault):
        return 0

    event_destroy = stream_sync

    def event_create(self, context, device, out, fault):
        out[0] = 0x77
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


@pytest.mark.parametrize("stream, log", [
    (None, []), (1, []), (-1, []),
    (2, [("record", None), ("wait", 2)]),
    (0x1000, [("record", None), ("wait", 0x1000)]),
])
def test_the_consumers_stream_waits(driver, stream, log):
    t = device_tensor()
    assert consume(export(t, stream=stream, max_version=(1, 3))).device == HERE
    assert driver.log == log


@pytest.mark.parametrize("record", [None, 0x3000])
@pytest.mark.parametrize("stream, waits", [(-1, None), (None, 1), (2, 2), (0x2000, 0x2000),
                                           (0x3000, 0x3000)])
def test_the_consumer_waits_for_the_readiness_record_or_the_work_stream(driver, record, stream,
                                                                        waits):
    t, out = wrapped(ones(), HERE), c_void_p()
    if record:
        abi.call(abi.lib.dlrs_ready_record, t.versioned, record)
        assert driver.log == [("record", record)]
        driver.log.clear()
    request = abi.DLRS_INIT(abi.dlrs_py_request, work_stream=0x2000,
                            stream=None if stream is None else id(stream))
    pyabi.call(pyabi.lib.dlrs_py_export, t.versioned, byref(request), byref(out))
    assert consume(pyabi._object(out)).device == HERE
    orders = [] if waits is None else [("wait", waits)]
    if not record:
        orders = [] if waits in (None, 0x2000) else [("record", 0x2000), *orders]
    assert driver.log == orders


def test_a_copy_for_a_consumer_waits_for_the_readiness_record(driver):
    a = ones()
    t = wrapped(a, HERE)
    abi.call(abi.lib.dlrs_ready_record, t.versioned, 0x3000)
    driver.log.clear()
    host = consume(export(t, dl_device=(1, 0), max_version=(1, 0)))
    assert host.device == (1, 0) and np.array_equal(np.from_dlpack(host), a)
    assert driver.log == [("wait", None), ("copy", CUDA, 1, None)]


@pytest.mark.parametrize("recorded", [False, True])
def test_pinned_memory_waits_for_a_readiness_record(driver, recorded):
    abi.call(abi.lib.dlrs_backend_set, 3, byref(driver.table), None)
    t = wrapped(ones(), (3, 0))
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
    host = consume(export(wrapped(a, HERE), stream=stream, dl_device=(1, 0), max_version=(1, 3)))
    assert host.device == (1, 0) and np.array_equal(np.from_dlpack(host), a)
    assert driver.log == [("copy", CUDA, 1, None)]


def test_invalid_stream_numbers(driver):
    for stream, device in [(0, (1, 0)), (-2, (1, 0)), (0, HERE)]:
        with pytest.raises(RuntimeError, match="STREAM"):
            export(wrapped(ones(), HERE), stream=stream, dl_device=device, max_version=(1, 3))
    for stream in (1, 0x1000):  # host memory has none
        with pytest.raises(RuntimeError, match="STREAM"):
            export(consume(export(wrapped(ones(), HERE), dl_device=(1, 0), max_version=(1, 3))), stream=stream,
                   dl_device=(1, 0), copy=True)
    assert len(driver.log) == 2


def test_export_to_the_cpu_and_back(driver):
    a = ones()
    t = wrapped(a, HERE)
    with pytest.raises(BufferError, match="COPY_NEEDED"):
        export(t, dl_device=(1, 0), copy=False)
    host = consume(export(t, dl_device=(1, 0), max_version=(1, 0)))
    assert host.device == (1, 0) and host.flags == 2
    assert np.array_equal(np.from_dlpack(host), a)
    again = consume(export(host, dl_device=HERE, max_version=(1, 0)))
    assert again.device == HERE and again.address in driver.memory
    back = import_(again, dl_device=(1, 0))
    assert np.array_equal(np.from_dlpack(back), a)
    assert np.array_equal(np.from_dlpack(t, device="cpu"), a)
    del again


def test_import_copies_to_the_cpu_if_the_producer_does_not(driver):
    a = ones()
    t = wrapped(a, HERE)
    old = Fake((), lambda **k: export(t))  # supports neither dl_device nor versions
    assert np.array_equal(np.from_dlpack(import_(old, dl_device=(1, 0))), a)
    with pytest.raises(BufferError, match="another device"):
        import_(old, dl_device=(1, 0), copy=-1)
    there = import_(Fake(NEW, lambda **k: a.__dlpack__(max_version=(1, 0))), dl_device=HERE)
    assert there.device == HERE and there.flags == 2


def on_stream(stream, make=device_tensor):
    """A framework whose tensors are on a device, and whose work is on a stream."""
    def current(kind, ordinal, out):
        c_void_p.from_address(out).value = stream
        return 0

    return with_table(Table(lambda obj, out: hands_out(obj, out, make), current=current))


@pytest.mark.parametrize("producer, consumer, log", [
    (0, 0, []), (1, 0, []), (0x1000, 0x1000, []),
    (0x1000, 0, [("record", 0x1000), ("wait", 1)]),
    (0, 0x2000, [("record", None), ("wait", 0x2000)]),
    (0x1000, -1, []),
])
def test_the_exchange_api_orders_streams(driver, producer, consumer, log):
    obj = on_stream(producer)
    assert import_(obj, stream=consumer).device == HERE
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


def said(device, takes=NEW, make=None):
    """A producer that reports its data's device, and exports one of the test CUDA."""
    return Fake(takes, make or (lambda **k: export(device_tensor(), max_version=(1, 3))), device)


@pytest.mark.parametrize("device, wanted, named", [
    (HERE, (0, 0), True), ((13, 0), (0, 0), True), ((3, 0), (0, 0), False), ((1, 0), (0, 0), False),
    (HERE, (1, 0), False), (HERE, (3, 0), False), (HERE, HERE, True),
    ((1, 0), HERE, True), ((CUDA, 1), HERE, True), ((3, 0), HERE, True),
])
def test_a_stream_belongs_to_the_target_device(driver, device, wanted, named):
    host = wanted[0] in (1, 3) or wanted[0] == 0 and device[0] in (1, 3)
    obj = said(device, make=(lambda **k: ones().__dlpack__(max_version=(1, 3))) if host else None)
    import_(obj, stream=0x1000, dl_device=wanted if wanted[0] != 3 else (1, 0))
    assert ("stream" in obj.calls[0]) == named and len(obj.calls) == 1


@pytest.mark.parametrize("wanted, names", [(HERE, [True, True]), ((CUDA, 1), [True, False])])
def test_an_older_producer_gets_no_stream_of_another_device(driver, wanted, names):
    a = ones()
    t = wrapped(a, HERE)
    obj = said(HERE, ("stream", "max_version"), lambda **k: export(t, max_version=(1, 3)))
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
        assert import_(obj, stream=stream).device == HERE
        assert driver.log == log


def test_the_librarys_copy_runs_on_the_stream(driver):
    a = ones()
    t = wrapped(a, HERE)
    copy = import_(said(HERE, make=lambda **k: export(t, max_version=(1, 3))), stream=0x1000, copy=1)
    assert copy.device == HERE and driver.log == [("copy", CUDA, CUDA, 0x1000)]
    driver.log.clear()
    back = import_(said(HERE, ("stream", "max_version"), lambda **k: export(t, max_version=(1, 3))),
                   dl_device=(1, 0))
    assert back.device == (1, 0) and driver.log == [("copy", CUDA, 1, None)]
    del copy


def test_managed_memory_by_the_exchange_api(driver):
    """The framework's stream is queried, and the consumer's waits for it."""
    abi.call(abi.lib.dlrs_backend_set, 13, byref(driver.table), None)
    try:
        obj = on_stream(0x3000, lambda: wrapped(ones(), (13, 0)))
        assert import_(obj, stream=0x1000).device == (13, 0)
        assert driver.log == [("record", 0x3000), ("wait", 0x1000)]
    finally:
        abi.call(abi.lib.dlrs_backend_set, 13, None, None)
