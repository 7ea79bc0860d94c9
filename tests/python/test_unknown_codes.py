"""Dtype codes and device types that this library does not know: every function of the C ABI does
what the table of docs/ABI.md says. A function that accepts them answers as for a known code of the
same size, or for a known device whose memory the host cannot read."""

import ctypes
import itertools
import mmap
import random
import re
from ctypes import (POINTER, addressof, byref, c_char, c_char_p, c_int64, c_void_p, pointer,
                    py_object)
from pathlib import Path

import numpy as np
import pytest

import dlpack_rs
from dlpack_rs import abi
from dlpack_rs.abi import enums
from dlpack_rs.abi._declarations import PYTHON_FUNCTIONS
from fakes import Answers

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = {**abi.FUNCTIONS, **PYTHON_FUNCTIONS}
NAMES = {name: parameters for name, *parameters in
         map(str.split, (ROOT / "src/capi/parameters.txt").read_text().splitlines())}
BARE, VERSIONED, LEGACY = (POINTER(kind) for kind in
                           (abi.DLTensor, abi.DLManagedTensorVersioned, abi.DLManagedTensor))
TENSORS = {BARE, VERSIONED, LEGACY, POINTER(VERSIONED), POINTER(LEGACY)}
TAKEN = {POINTER(VERSIONED): VERSIONED, POINTER(LEGACY): LEGACY}
# Names of parameters of functions that return no status; the other functions' are in NAMES.
NAMES["dlrs_managed_tensor_allocator"] = ["prototype", "out", "context", "set_error"]
NAMES |= {f"dlrs_{name}": ["tensor"] for name in
          ("is_own", "ref_count", "release", "release_legacy")}


def code_of(name):
    dtype = abi.DLDataType()
    abi.call(abi.lib.dlrs_dtype_parse, name.encode(), len(name), dtype)
    return dtype.code


CPU, OTHER = (abi.kDLCPU, 0), (abi.kDLExtDev, 0)
KNOWN = {"dtype": {*enums.DataTypeCode, *map(code_of, dlpack_rs.DTYPES)},
         "device": set(dlpack_rs.DEVICES)}
POSSIBLE = {"dtype": range(256), "device": [*range(-3, 70), 255, 256, 999, 2**31 - 1, -(2**31)]}
UNKNOWN = {kind: [code for code in POSSIBLE[kind] if code not in KNOWN[kind]] for kind in KNOWN}


# --- The table ----------------------------------------------------------------------------------


def table():
    """Functions with the argument that decides; and (function, option) with what becomes of an
    unknown dtype code and of an unknown device type."""
    text = (ROOT / "docs/ABI.md").read_text().partition("## Codes that are not known")[2]
    rows, families, by = {}, {}, {}
    for line in re.findall(r"^\| .*`.*", text.partition("\n## ")[0], re.M):
        functions, *outcomes = (cell.strip() for cell in line.strip("|").split("|"))
        words = re.findall(r"`(\w+\*?)`", functions)
        for word in (word for word in words if word.startswith("dlrs_")):
            if word.endswith("*"):
                families[word[:-1]] = outcomes
                continue
            by.update({word: at for at in re.findall(r"by \w+ argument (\w+)", functions)})
            for option in [word for word in words if word.startswith("DLRS_")] or [None]:
                assert (word, option) not in rows, f"{word} stands twice"
                rows[word, option] = outcomes
    own = {name for name, _ in rows}
    return by, rows | {(name, None): outcomes for begin, outcomes in families.items()
                       for name in FUNCTIONS if name.startswith(begin) and name not in own}


BY, ROWS = table()


def takes(name):
    """What a function takes that has a code."""
    kinds = FUNCTIONS[name][1:]
    parameters = list(zip(NAMES.get(name, []), kinds))
    tensor = any(kind in TENSORS and at != "out" or at in ("object", "capsule")
                 for at, kind in parameters)
    return {"dtype": tensor or abi.DLDataType in kinds,
            "device": tensor or abi.DLDevice in kinds or "device_type" in NAMES.get(name, [])}


def test_every_function_that_takes_a_code_is_in_the_table():
    assert len(UNKNOWN["dtype"]) > 200 and len(UNKNOWN["device"]) > 30
    listed = {name: outcomes for (name, _), outcomes in ROWS.items()}
    assert listed.keys() <= FUNCTIONS.keys()
    for name in FUNCTIONS:
        if name not in NAMES:  # neither a tensor nor a code can hide there
            assert not {*TENSORS, abi.DLDevice} & {*FUNCTIONS[name][1:]}, name
            continue
        taken = takes(name)
        assert (name in listed) == any(taken.values()), name
        for kind, outcome in zip(taken, listed.get(name, ())):
            assert outcome in (("accepted", "refused") if taken[kind] else "-"), (name, kind)


# --- Calls --------------------------------------------------------------------------------------

RESULTS = {POINTER(kind) for kind in (ctypes.c_int32, ctypes.c_uint32, c_int64, ctypes.c_uint64,
                                      ctypes.c_double, c_void_p)}
CALLBACK = ctypes.CFUNCTYPE(None, c_void_p)(lambda context: None)
SAID = []
SET_ERROR = abi.dlrs_set_error_fn(lambda context, kind, message: SAID.append(message.decode()))
NUMBERS = {"order": ord("C"), "ndim": 2, "axis_b": 1, "align_bytes": 64, "n": 1,
           "count": 1, "window": 2, "step": 1, "stop": 2, "lanes": 1, "copy": 1, "notation": 1,
           "level": 1, "number": abi.DLRS_PY_STREAM_NONE}
SPECIAL = {"dlrs_view_apply": {"count": 0},
           "dlrs_view_squeeze": {"axis": abi.DLRS_ALL_AXES},
           "dlrs_attach": {"order": abi.DLRS_BEFORE_FREE},
           "dlrs_contiguous": {"order": ord("F")}, "dlrs_mem_free": {"data": None}}


class Call:
    """A call with arguments that are right but for a code. Unknown memory cannot be followed."""

    def __init__(self, name, dtype, device, option=None, only=None, rows=3):
        """The codes stand in all arguments, or at `only`, with float32 on the CPU in the others."""
        self.shape = rows, 4
        self.name, self.dtype, self.device, self.option = name, dtype, device, option
        self.memory = [(c_char * 4096).from_buffer(mmap.mmap(-1, 4096)) for _ in range(2)]
        self.memory[0][:64] = bytes(range(64))
        self.kept, self.mine, self.outs, self.takes = [], [], [], []
        kinds = FUNCTIONS[name][1:]
        self.arguments = []
        for place, (at, kind) in enumerate(zip(NAMES[name], kinds)):
            self.codes = (dtype, device) if only in (None, place) else ((2, 32, 1), CPU)
            self.arguments.append(self.argument(at, kind))
        function = getattr(abi.pylib if name in PYTHON_FUNCTIONS else abi.lib, name)
        if name == "dlrs_detach":
            abi.call(abi.lib.dlrs_attach, self.arguments[0], CALLBACK, None, 0)
        error = self.error = abi.DLRS_INIT(abi.dlrs_error)
        try:
            self.answer = function(*self.arguments, *([byref(error)] if len(kinds) > len(
                self.arguments) else []))
        except Exception as raised:  # by a function that calls Python
            self.answer = str(raised)
        ctypes.pythonapi.PyErr_Clear()
        self.status = abi.lib.dlrs_status_name(error.status).decode()
        if name == "dlrs_managed_tensor_allocator" and self.answer != 0:
            self.status = re.findall(r"\[(DLRS_\w+)\]", SAID.pop())[0]

    def keep(self, value):
        self.kept.append(value)
        return value

    def bare(self):
        dtype, device = self.codes
        shape, strides = (self.keep((c_int64 * 2)(*values)) for values in (self.shape, (4, 1)))
        data = 4096 if device[0] != abi.kDLCPU else addressof(self.memory[len(self.mine) % 2])
        self.mine.append(data)
        return self.keep(abi.DLTensor(data, abi.DLDevice(*device), 2, abi.DLDataType(*dtype),
                                      shape, strides, 0))

    def versioned(self):
        out = VERSIONED()
        abi.call(abi.lib.dlrs_tensor_wrap, byref(self.bare()), 0, None, None, byref(out))
        return self.keep(out)

    def tensor(self, kind):
        if kind is BARE:
            return pointer(self.bare())
        if kind is VERSIONED:
            return self.versioned()
        if kind is LEGACY:
            out = LEGACY()
            abi.call(abi.lib.dlrs_to_legacy_take, byref(self.versioned()), 1, byref(out))
            return self.keep(out)
        self.takes.append(self.tensor(TAKEN[kind]))
        return pointer(self.takes[-1])

    def options(self, kind):
        if self.option is None:
            return None
        value = getattr(abi, self.option)
        if kind is POINTER(abi.dlrs_copy_options):
            return pointer(self.keep(abi.DLRS_INIT(abi.dlrs_copy_options, flags=value)))
        options = self.keep(abi.DLRS_INIT(abi.dlrs_import_options, level=value))
        if kind is POINTER(abi.dlrs_py_import_options):
            options = self.keep(abi.DLRS_INIT(abi.dlrs_py_import_options))
            options.import_options = pointer(self.kept[-2])
        return pointer(options)

    def argument(self, at, kind):
        dtype, device = self.codes
        if at in SPECIAL.get(self.name, {}):
            return SPECIAL[self.name][at]
        if at == "options":
            return self.options(kind)
        if at == "level" and self.option is not None:
            return getattr(abi, self.option)
        if at == "device_type":
            return device[0]
        if at == "nbytes" and kind is ctypes.c_uint64:
            return self.shape[0] * 4 * self.dtype[1] * self.dtype[2] // 8
        if kind is abi.DLDevice:
            return abi.DLDevice(*device)
        if kind is abi.DLDataType:
            return abi.DLDataType(*dtype)
        if at in ("shape", "axes") and kind is POINTER(c_int64) or at == "strides":
            return (c_int64 * 2)(*{"shape": self.shape, "axes": (1, 0), "strides": (4, 1)}[at])
        if at == "out" or kind in RESULTS:
            out = kind._type_()
            if kind is BARE:
                out.ndim, out.shape, out.strides = 64, (c_int64 * 64)(), (c_int64 * 64)()
            elif hasattr(out, "struct_size"):
                out.struct_size = ctypes.sizeof(out)
            self.outs.append(out)
            return pointer(out)
        if kind in TENSORS:
            return self.tensor(kind)
        if kind is py_object:
            out = py_object()
            abi.call(abi.pylib.dlrs_py_capsule_new_take, byref(self.versioned()), byref(out))
            capsule = abi.new_object(out)
            return py_object({"capsule": capsule, "object": Answers(capsule)}.get(at, self))
        if at == "callback":
            return ctypes.cast(CALLBACK, c_void_p)
        if at == "set_error":
            return ctypes.cast(SET_ERROR, c_void_p)
        if at == "value":
            return self.keep((c_char * 64)())
        if at == "base" and kind is c_void_p:
            return self.mine[-1]
        if at in ("data", "bytes", "event") or self.name == "dlrs_stream_destroy":
            return ctypes.cast(self.memory[0], c_void_p)
        if kind is c_char_p:
            return b"name" if at in ("name", "path") else None
        if isinstance(kind, type) and issubclass(kind, ctypes._Pointer):
            return pointer(self.keep(kind._type_())) if at == "old" else None
        return NUMBERS.get(at, 0)

    def seen(self, value):
        """A result without the codes, which must be those of the call."""
        if isinstance(value, (VERSIONED, LEGACY)):
            flags = value.contents.flags if isinstance(value, VERSIONED) else 0
            return flags, self.seen(value.contents.dl_tensor)
        if isinstance(value, abi.DLTensor):
            assert (value.device.device_type, value.device.device_id) == self.device
            lanes = 1 if self.name == "dlrs_view_lanes" else self.dtype[2]
            assert (value.dtype.code, value.dtype.bits, value.dtype.lanes) == (
                *self.dtype[:2], lanes)
            near = [value.data - data for data in self.mine if abs(value.data - data) < 4096]
            nbytes = value.dtype.bits * value.dtype.lanes // 8 * 12
            of_copy = ctypes.string_at(value.data, nbytes) if not near else None
            return (value.ndim, value.shape[:value.ndim], value.strides[:value.ndim],
                    value.byte_offset, near and near[0], of_copy)
        return None if isinstance(value, (py_object, c_void_p)) else getattr(value, "value", None)

    def results(self):
        texts = "capacity" in NAMES[self.name]  # the codes are in them
        return None if texts else [self.seen(out) for out in self.outs], [
            bytes(memory) for memory in self.memory]

    def nothing_happened(self):
        """Nothing was taken and nothing written."""
        assert all(self.takes)
        assert not any(out for out in self.outs if isinstance(out, (VERSIONED, LEGACY, py_object)))
        assert [bytes(memory) for memory in self.memory] == [bytes(range(64)).ljust(4096, b"\0"),
                                                             bytes(4096)]


def cases(kind):
    return [pytest.param(*row, outcomes[kind == "device"], id="-".join(filter(None, row)))
            for row, outcomes in ROWS.items() if outcomes[kind == "device"] != "-"]


def some(kind, name):
    """The first that is not known and others: -1 may stand for none of them in a program."""
    codes = UNKNOWN[kind]
    first = next(code for code in codes if code > max(KNOWN[kind]))
    fixed = {first, codes[-1], *{0, -1, 2**31 - 1, -(2**31)}.intersection(codes)}
    return sorted(fixed) + random.Random(name).sample(codes, 4)


def places(name, kind):
    """Where the code may stand: everywhere, or in one argument alone."""
    kinds = {"dtype": {*TENSORS, abi.DLDataType}, "device": {*TENSORS, abi.DLDevice}}[kind]
    for place, (at, ctype) in enumerate(zip(NAMES[name], FUNCTIONS[name][1:])):
        decides = BY.get(name, at) == at and at != "out"
        if decides and (ctype in kinds or (kind, at) == ("device", "device_type")):
            yield place
    yield None


@pytest.mark.parametrize(("name", "option", "outcome"), cases("dtype"))
def test_a_dtype_code_that_is_not_known(name, option, outcome):
    for code in some("dtype", name):
        for bits, lanes in ((8, 1), (16, 3), (32, 1), (64, 2)):
            dtype = (code, bits, lanes)
            if outcome == "accepted":
                call = Call(name, dtype, CPU, option)
                known = Call(name, (abi.kDLUInt, bits, lanes), CPU, option)
                assert (call.status, known.status) == ("DLRS_OK", "DLRS_OK")
                assert call.results() == known.results()
                continue
            for place, rows in itertools.product(places(name, "dtype"), (3, 0)):
                call = Call(name, dtype, CPU, option, place, rows)
                assert call.status == "DLRS_DTYPE_CODE", (place, rows)
                call.nothing_happened()


@pytest.mark.parametrize(("name", "option", "outcome"), cases("device"))
def test_a_device_type_that_is_not_known(name, option, outcome):
    for code in some("device", name):
        device, dtype = (code, 0), (abi.kDLFloat, 32, 1)
        if outcome == "accepted":
            call, known = Call(name, dtype, device, option), Call(name, dtype, OTHER, option)
            assert (call.status, known.status) == ("DLRS_OK", "DLRS_OK")
            assert (call.results(), call.answer) == (known.results(), known.answer)
            continue
        for place, rows in itertools.product(places(name, "device"), (3, 0)):
            call = Call(name, dtype, device, option, place, rows)
            assert call.status == "DLRS_DEVICE_TYPE", (code, place, rows)
            call.nothing_happened()


# --- Bytes --------------------------------------------------------------------------------------


def random_layout(rng, nbytes):
    """A view of elements of `nbytes` bytes in a buffer, strided and permuted as may be."""
    shape = rng.integers(1, 5, rng.integers(0, 4))
    room = rng.integers(0, 256, (*(2 * shape), nbytes), np.uint8)
    view = room.view(f"V{nbytes}").reshape(2 * shape)
    view = view[(*(slice(None, None, int(rng.choice([-2, -1, 1, 2]))) for _ in shape), ...)]
    view = view[(*(slice(extent) for extent in shape), ...)]
    return view.transpose(rng.permutation(view.ndim))


def described(array, dtype):
    strides = (step // max(array.itemsize, 1) for step in array.strides)
    return abi.DLTensor(array.ctypes.data, abi.DLDevice(*CPU), array.ndim, abi.DLDataType(*dtype),
                        (c_int64 * 8)(*array.shape), (c_int64 * 8)(*strides), 0)


def test_raw_copies_of_random_layouts_move_bits_times_lanes():
    rng = np.random.default_rng(18)
    raw = abi.DLRS_INIT(abi.dlrs_copy_options, flags=abi.DLRS_COPY_RAW_BYTES)
    sizes = [(bits, lanes) for bits in range(1, 256) for lanes in (1, 2, 3, 8, 17)
             if bits * lanes % 8 == 0]
    for _ in range(1500):
        bits, lanes = sizes[rng.integers(len(sizes))]
        code = int(rng.choice(UNKNOWN["dtype"]))
        src = random_layout(rng, bits * lanes // 8)
        room = np.zeros((2, *src.shape), src.dtype)
        dst = room[1, ...].T.copy().T if rng.random() < 0.5 else room[1, ...]
        tensors = [described(array, (code, bits, lanes)) for array in (src, dst)]
        abi.call(abi.lib.dlrs_copy_desc, byref(tensors[0]), 0, byref(tensors[1]), 0, byref(raw))
        assert dst.tobytes() == src.tobytes(), (code, bits, lanes, src.shape, src.strides)


def test_raw_copies_of_packed_elements_keep_the_bits_behind_them():
    rng = np.random.default_rng(21)
    raw = abi.DLRS_INIT(abi.dlrs_copy_options, flags=abi.DLRS_COPY_RAW_BYTES)
    sizes = [(bits, lanes) for bits in range(1, 256) for lanes in (1, 2, 3) if bits * lanes % 8]
    for _ in range(1500):
        bits, lanes = sizes[rng.integers(len(sizes))]
        count = int(rng.integers(1, 40))
        nbits = bits * lanes * count
        src, dst = (rng.integers(0, 256, -(-nbits // 8) + 1, np.uint8) for _ in range(2))
        taken = np.arange(8 * src.size) < nbits
        wanted = np.where(taken, *(np.unpackbits(side, bitorder="little") for side in (src, dst)))
        dtype = (int(rng.choice(UNKNOWN["dtype"])), bits, lanes)
        tensors = [abi.DLTensor(side.ctypes.data, abi.DLDevice(*CPU), 1, abi.DLDataType(*dtype),
                                (c_int64 * 1)(count), (c_int64 * 1)(1), 0) for side in (src, dst)]
        abi.call(abi.lib.dlrs_copy_desc, byref(tensors[0]), 0, byref(tensors[1]), 0, byref(raw))
        assert np.array_equal(np.unpackbits(dst, bitorder="little"), wanted), (dtype, count)
