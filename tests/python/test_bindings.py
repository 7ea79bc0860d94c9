"""The functions for bindings, through ctypes: the parts of a framework's Python bindings."""

import builtins
import ctypes
import gc
import itertools
import sys
import weakref
from ctypes import byref, c_void_p, py_object, sizeof

import numpy as np
import pytest

import pyabi
from dlpack_rs import abi
from dlpack_rs.abi import (DLDataType, DLDevice, DLTensor, Versioned, dlrs_error,
                           dlrs_py_error_options, dlrs_py_kind, dlrs_py_request)
from fakes import new_capsule
from pyabi import Tensor, call, import_, lib

NAME = b"test_bindings.private"
KEYWORDS = "stream", "max_version", "dl_device", "copy"


class Memory:
    """An object that owns memory."""

    def __init__(self, values=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)):
        self.values = (ctypes.c_double * len(values))(*values)

    def describe(self, shape=(2, 3), strides=(3, 1), device=(1, 0), dtype=(2, 64, 1)):
        n = len(shape)
        self.shape = (ctypes.c_int64 * n)(*shape)
        self.strides = (ctypes.c_int64 * n)(*strides) if strides is not None else None
        return DLTensor(ctypes.addressof(self.values), DLDevice(*device), n, DLDataType(*dtype),
                        self.shape, self.strides, 0)


def references(obj):
    return sys.getrefcount(obj) - 2


def wrap(memory, flags=0, **of):
    out = Versioned()
    call(lib.dlrs_py_wrap, byref(memory.describe(**of)), flags, id(memory), byref(out))
    return Tensor(out)


def export_desc(memory, flags=0, request=None, **of):
    out, tensor, asked = c_void_p(), memory.describe(**of), None
    objects = tuple(request or ())  # alive until the call returns
    if objects:
        asked = byref(dlrs_py_request(sizeof(dlrs_py_request), *map(id, objects)))
    call(lib.dlrs_py_export_desc, byref(tensor), flags, id(memory), asked, byref(out))
    return pyabi._object(out)


def parse(*args, **keywords):
    """The keywords as `dlrs_py_request_parse` reads them."""
    values = (*args, *keywords.values())
    array = (py_object * len(values))(*values)
    names = tuple(keywords)
    request = dlrs_py_request(struct_size=sizeof(dlrs_py_request), work_stream=5)
    call(lib.dlrs_py_request_parse, ctypes.cast(array, ctypes.POINTER(c_void_p)), len(args),
         id(names) if names else None, byref(request))
    assert request.work_stream is None
    found = {name: getattr(request, name) for name in KEYWORDS}
    return {name: ctypes.cast(at, py_object).value for name, at in found.items() if at}


def test_wrap_keeps_and_releases_the_owner():
    memory = Memory()
    alive = weakref.ref(memory)
    before = references(memory)
    t = wrap(memory)
    assert references(memory) == before + 1
    assert np.array_equal(np.from_dlpack(t), [[1, 2, 3], [4, 5, 6]])
    assert t.address == ctypes.addressof(memory.values) and t.strides == (3, 1)
    gc.collect()
    assert t.ref_count() == 1 and references(memory) == before + 1
    del memory
    assert alive() is not None
    del t
    assert alive() is None


@pytest.mark.parametrize("of, flags, status", [
    ({"shape": (-1, 3)}, 0, "SHAPE_NEG"), ({"shape": (2 ** 62, 3)}, 0, "SIZE_OVERFLOW"),
    ({}, 8, "FLAGS"), ({"dtype": (2, 0, 1)}, 0, "DTYPE_BITS"),
])
@pytest.mark.parametrize("make", [wrap, export_desc])
def test_failed_wrap_takes_no_reference(make, of, flags, status):
    memory = Memory()
    before = references(memory)
    with pytest.raises((ValueError, BufferError), match=f"DLRS_{status}"):
        make(memory, flags, **of)
    assert references(memory) == before


@pytest.mark.parametrize("version, name", [(None, "dltensor"), ((1, 0), "dltensor_versioned"),
                                           ((0, 8), "dltensor"), ([1, 3], "dltensor_versioned")])
def test_export_desc_implements_dlpack(version, name):
    memory = Memory()
    before = references(memory)
    capsule = export_desc(memory, request=(None, version, None, None))
    assert f'"{name}"' in repr(capsule) and references(memory) == before + 1
    t = pyabi.consume(capsule, 0)
    assert t.values(6)[:] == [1, 2, 3, 4, 5, 6] and t.flags == 0
    del capsule, t
    assert references(memory) == before
    del_me = export_desc(memory, request=(None, version, None, None))
    del del_me  # not consumed
    assert references(memory) == before
    assert '"dltensor"' in repr(export_desc(memory))


def test_parse_reads_the_keywords():
    given = dict(stream=None, max_version=(1, 3), dl_device=(1, 0), copy=False)
    for count in range(5):
        for names in itertools.permutations(given, count):
            some = {name: given[name] for name in names}
            assert parse(**some) == some
    other = {"".join(["max", "_ver", "sion"]): (1, 0), "co" + str("py"): True}  # not interned
    assert parse(**other) == {"max_version": (1, 0), "copy": True}


@pytest.mark.parametrize("args, keywords, match", [
    ((1,), {}, r"takes no positional arguments \(1 given\)"),
    ((1, 2), {"copy": True}, r"takes no positional arguments \(2 given\)"),
    ((), {"copy": True, "device": 1}, "unexpected keyword argument 'device'"),
    ((), {"": 1}, "unexpected keyword argument ''"),
    ((), {"copy\0": 1}, r"unexpected keyword argument 'copy\\x00'"),
    ((), {"Stream": 1}, "'Stream'"),
])
def test_parse_raises_the_errors_of_python(args, keywords, match):
    with pytest.raises(TypeError, match=r"__dlpack__\(\) .*" + match):
        parse(*args, **keywords)


def private_capsule(tensor, name=NAME):
    return pyabi.capsule(tensor, lib.dlrs_py_holder_new_take, name)


def held(obj, name=NAME):
    return lib.dlrs_py_holder_get(id(obj), name)


def test_a_private_capsule_cannot_be_consumed():
    memory = Memory()
    before = references(memory)
    t = wrap(memory)
    address = t.address
    h = private_capsule(t)
    assert t.versioned is None
    assert held(h).contents.dl_tensor.data == address
    assert not held(h, b"other") and not held(memory) and not held(None) and not held(NAME)
    with pytest.raises(ValueError, match="is no capsule with a DLPack tensor"):
        pyabi.consume(h)
    with pytest.raises((AttributeError, TypeError)):
        np.from_dlpack(h)
    assert references(memory) == before + 1
    del h
    assert references(memory) == before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_private_capsule_is_freed_with_an_exception_set():
    class Shout(Memory):
        def __del__(self):
            gone.append(1)
            raise ValueError("while it goes")  # unraisable
    gone = []
    h = [private_capsule(wrap(Shout()))]
    with pytest.raises(KeyError):
        try:
            {}["missing"]
        finally:
            h.clear()
    assert gone == [1]


@pytest.mark.parametrize("name", [b"dltensor", b"used_dltensor", b"dltensor_versioned",
                                  b"used_dltensor_versioned", b"dlpack_exchange_api"])
def test_dlpack_s_names_make_no_private_capsule(name):
    memory = Memory()
    t = wrap(memory)
    with pytest.raises(ValueError, match="one of DLPack's"):
        private_capsule(t, name)
    assert t.values(1)[0] == 1.0
    assert not held(memory, name) and not held(export_desc(memory), b"dltensor")


def test_a_foreign_capsule_is_no_private_capsule():
    assert not held(new_capsule(8, NAME, None))


def failure(size=sizeof(dlrs_error)):
    error = dlrs_error(struct_size=size)
    strides = (ctypes.c_int64 * 2)(12, 6)
    shape = (ctypes.c_int64 * 2)(2, 3)
    lib.dlrs_strides_from_bytes(shape, strides, 2, 4, strides, byref(error))
    assert error.status == abi.DLRS_STRIDES_UNEVEN
    return error


def raised_as(error, kinds=(), prefix=None):
    rows = (dlrs_py_kind * max(len(kinds), 1))(*(dlrs_py_kind(*kind) for kind in kinds))
    options = dlrs_py_error_options(sizeof(dlrs_py_error_options), len(kinds), rows, prefix)
    try:
        own = dlrs_error(struct_size=sizeof(dlrs_error))
        status = lib.dlrs_py_error_set_as(byref(error), byref(options), byref(own))
        assert status != 0, "nothing was raised"
        return own
    except BaseException as exception:
        return exception


TEXT = "stride in bytes is no multiple of the item size (value 6, limit 4)"


def test_offsets_of_the_parts_of_a_message():
    error = failure()
    message = error.message
    assert message[error.text_start:error.text_end] == TEXT.encode()
    assert message.endswith(message[error.hint_start:error.hint_end]) and error.hint_start
    assert message[:error.text_start] == b"dlrs_strides_from_bytes: byte_strides->strides[1]: "
    assert message[error.text_end:error.hint_start] == b" [DLRS_STRIDES_UNEVEN]. "


@pytest.mark.parametrize("prefix, text", [
    (b"", TEXT), (b"mylib: ", "mylib: " + TEXT), ("ä ".encode(), "ä " + TEXT), (None, None)])
def test_error_prefix_of_the_framework(prefix, text):
    error = failure()
    exception = raised_as(error, prefix=prefix)
    assert type(exception) is BufferError
    assert str(exception) == (error.message.decode() if text is None else text)


@pytest.mark.parametrize("kinds, kind", [
    ([], BufferError),
    ([(219, 0, b"TypeError")], TypeError),
    ([(200, 0, b"KeyboardInterrupt")], KeyboardInterrupt),
    ([(200, 0, b"IndexError"), (219, 0, b"TypeError")], IndexError),  # the first match
    ([(218, 0, b"TypeError"), (300, 0, b"TypeError")], BufferError),
    ([(219, 10, b"TypeError")], TypeError),
    ([(219, 4, b"TypeError"), (200, 10, b"OSError")], OSError),
])
def test_kinds_are_chosen_by_status_and_field(kinds, kind):
    assert type(raised_as(failure(), kinds)) is kind


@pytest.mark.parametrize("name", [b"NoSuchError", b"len", b"int", b"", b"\xff"])
def test_a_kind_must_be_an_exception(name):
    own = raised_as(failure(), [(219, 0, name)])
    assert (own.status, own.argument) == (abi.DLRS_BAD_ARG, 2) and b"kinds" in own.message


def test_all_builtin_exceptions_are_kinds():
    for name, kind in vars(builtins).items():
        of_text = "Unicode" not in name and "ExceptionGroup" not in name  # need more arguments
        if isinstance(kind, type) and issubclass(kind, BaseException) and of_text:
            assert type(raised_as(failure(), [(219, 0, name.encode())])) is kind


def test_parts_that_are_not_there_or_invalid_are_ignored():
    for size, start, end in [(dlrs_error.text_start.offset, 0, 7), (sizeof(dlrs_error), 9, 3),
                             (sizeof(dlrs_error), 0, 65535), (sizeof(dlrs_error), 65535, 65535)]:
        error = failure(size=size)
        error.text_start, error.text_end = start, end
        assert str(raised_as(error, prefix=b"x: ")) == "x: " + error.message.decode()


# --- Options of an import ---------------------------------------------------------------------

class Speaks:
    """Supports the given protocols, and records which were called."""

    def __init__(self, *protocols):
        self.protocols, self.asked = protocols, []

    def __getattribute__(self, name):
        own = object.__getattribute__
        of = {"__dlpack__": "dlpack", "__array_interface__": "interface"}
        if name in of:
            own(self, "asked").append(of[name])
            if of[name] not in own(self, "protocols"):
                raise AttributeError(name)
            array = np.ones(3)
            return array.__dlpack__ if name == "__dlpack__" else array.__array_interface__
        return own(self, name)


class Lends(Speaks, bytearray):
    def __new__(cls, *_):
        return bytearray.__new__(cls, 3)

    def __init__(self, *protocols):
        bytearray.__init__(self, 3)
        Speaks.__init__(self, *protocols)


@pytest.mark.parametrize("protocols", range(32))
def test_only_requested_protocols_are_tried(protocols):
    of = {"dlpack": abi.DLRS_PY_DUNDER_DLPACK, "interface": abi.DLRS_PY_ARRAY_INTERFACE}
    order = [name for name in of if not protocols or protocols & of[name]]
    speaks = Speaks()
    with pytest.raises(AttributeError) as raised:
        import_(speaks, protocols=protocols)
    assert list(dict.fromkeys(speaks.asked)) == order
    general = not protocols or protocols & (abi.DLRS_PY_BUFFER | abi.DLRS_PY_ARRAY_INTERFACE)
    says = "has no __dlpack__" if general else "'Speaks' object has no attribute '__dlpack__'"
    assert says in str(raised.value)
    for one in order:
        assert import_(Speaks(one), protocols=protocols).shape == (3,)


def test_each_protocol_alone():
    assert import_(Lends("dlpack"), protocols=abi.DLRS_PY_BUFFER).dtype == (1, 8, 1)
    assert import_(Lends("dlpack"), protocols=abi.DLRS_PY_DUNDER_DLPACK).dtype == (2, 64, 1)
    capsule = np.ones(3).__dlpack__(max_version=(1, 0))
    for protocols in (1, 2, 3, 8, 16, 24):
        with pytest.raises(AttributeError):
            import_(capsule, protocols=protocols)
    assert import_(capsule, protocols=abi.DLRS_PY_CAPSULE).shape == (3,)
    with pytest.raises(ValueError, match="consumed before"):
        import_(capsule, protocols=abi.DLRS_PY_CAPSULE)


def test_device_and_copy_as_objects():
    a = np.arange(6.0)
    for device in (None, (1, 0), [1, 0], "cpu", "cpu:0"):
        t = import_(a, asked=(device, None))
        assert t.address == a.ctypes.data
        assert import_(a, asked=(device, False)).address == a.ctypes.data
        t = import_(a, asked=(device, True))
        assert t.address != a.ctypes.data and t.flags == 2
    assert import_(a, copy=1, asked=(None, None)).address != a.ctypes.data
    assert import_(a, copy=1, asked=(None, False)).address == a.ctypes.data
    for copy in ("x", 0, 1, [], np.bool_(True)):
        with pytest.raises(ValueError, match="copy"):
            import_(a, asked=(None, copy))
    for device in (7, 1.5, (1,), (1, 0, 0), ("cpu", 0), object(), b"cpu", {}):
        with pytest.raises(TypeError, match="device must be a pair of integers|integer"):
            import_(a, asked=(device, None))
    for device in ("", "gpu", "cuda:", "cpu:1"):
        with pytest.raises((ValueError, BufferError)):
            import_(a, asked=(device, None))


@pytest.mark.parametrize("keyword", ["max_version", "dl_device"])
@pytest.mark.parametrize("value", [7, 1.5, (1,), (1, 0, 0), ("1", "0"), (None, 0), "10", object()])
def test_invalid_device_pairs_are_type_errors(keyword, value):
    memory = Memory()
    before = references(memory)
    request = dict.fromkeys(KEYWORDS) | {keyword: value}
    with pytest.raises(TypeError, match=keyword + " must be a pair of integers|integer"):
        export_desc(memory, request=request.values())
    assert references(memory) == before


@pytest.mark.parametrize("limits, match", [
    ({"device_types": 1 << 2}, "type of device"), ({"ranks": 1 << 1}, "so many dimensions"),
    ({"ranks": (1 << 2) - 1}, "so many dimensions"), ({"dtypes_count": 1}, "this dtype"),
])
@pytest.mark.parametrize("copy", [0, 1, -1])
def test_limits_reject_and_release_the_object(limits, match, copy):
    a = np.ones((2, 3))
    before = references(a)
    if "dtypes_count" in limits:
        limits = limits | {"dtypes": ctypes.pointer(DLDataType(2, 32, 1))}
    with pytest.raises(BufferError, match=match):
        import_(a, copy=copy, **limits)
    gc.collect()
    assert references(a) == before
    open_ = {"device_types": 1 << 1, "ranks": 1 << 2, "dtypes_count": 1,
             "dtypes": ctypes.pointer(DLDataType(2, 64, 1))}
    assert import_(a, **open_).shape == (2, 3)


def test_the_device_type_is_that_of_the_copy():
    assert import_(np.ones(3), dl_device=(1, 0), device_types=1 << 1).device == (1, 0)
    managed = wrap(Memory(), device=(13, 0))  # CPU-accessible
    assert import_(managed, device_types=1 << 13).device == (13, 0)
    with pytest.raises(BufferError, match="type of device"):
        import_(managed, dl_device=(1, 0), device_types=1 << 13)
