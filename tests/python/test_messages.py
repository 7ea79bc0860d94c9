"""Messages: the table of causes in messages.txt, and what no message may hold."""

import ctypes as c
import os
import re
from pathlib import Path

import numpy as np
import pytest

import py_module
from dlpack_rs import abi
from fakes import Answers

m = py_module.load()
TABLE = Path(__file__).with_name("messages.txt")
ROWS = re.findall(r"^(?! |#)(.+)\n    (.*)$", TABLE.read_text(), re.M)
CPU = abi.DLDevice(1, 0)


def dtype(code, bits, lanes=1):
    return abi.DLDataType(code, bits, lanes)


F32 = dtype(2, 32)


class C:
    """What a row of `c` can use; a call gives its message."""

    def __getattr__(self, name):
        def run(*arguments):
            arguments = [argument.encode() if isinstance(argument, str) else argument
                         for argument in arguments]
            abi.call(getattr(abi.lib, name), *arguments)
        return run

    def new(self, *shape, code=2, bits=32, lanes=1, device=CPU):
        """A tensor, or none."""
        out = abi.Versioned()
        abi.call(abi.lib.dlrs_tensor_new, (c.c_int64 * len(shape))(*shape), len(shape),
                 dtype(code, bits, lanes), device, None, c.pointer(out))
        return out

    var = staticmethod(c.pointer)
    out = property(lambda self: c.pointer(abi.Versioned()))
    number = property(lambda self: c.byref(c.c_int64()))
    dtype = property(lambda self: c.byref(abi.DLDataType()))
    device = property(lambda self: c.byref(abi.DLDevice()))

    def numbers(self, *numbers):
        return (c.c_int64 * len(numbers))(*numbers)

    def options(self, name, **members):
        options = abi.DLRS_INIT(getattr(abi, name))
        for member, value in members.items():
            setattr(options, member, value)
        return c.byref(options)

    def only_int32(self):
        """Options of a consumer that takes int32 alone."""
        self.dtypes = (abi.DLDataType * 1)(dtype(0, 32))
        return self.options("dlrs_import_options", dtypes=self.dtypes, dtypes_count=1)

    def legacy(self):
        """A legacy struct, where a versioned one is wanted."""
        self.pointer = self.new(2, 3)
        self.taken = abi.Legacy()
        abi.call(abi.lib.dlrs_to_legacy_take, c.pointer(self.pointer), 0, c.pointer(self.taken))
        return c.cast(self.taken, abi.Versioned)


def names():
    """Whatever a row can use."""
    fixed = np.ones(3)
    fixed.flags.writeable = False
    used = np.arange(3.0).__dlpack__(max_version=(1, 0))
    m.from_dlpack(Answers(used))
    return {"c": C(), "m": m, "np": np, "t": m.zeros((2, 3)), "fixed": m.from_dlpack(fixed),
            "used": used, "Producer": Answers, "CPU": CPU, "F32": F32}


def message(cause):
    with pytest.raises(Exception) as raised:
        exec(cause, names())
    said = f"{raised.type.__name__}: {raised.value}"
    return re.sub(r"(?<=out of memory, bytes \(value )\d+", "some", said)


def fault(said, in_python):
    """What is wrong with any message."""
    remedy = re.search(r"\[DLRS_\w+\]\. (.+)$", said)
    found = [word for word in ("documented range", "Compile with", "  ", "value)") if word in said]
    if in_python:
        without = re.sub(r"\[DLRS_\w+\]", "", said)
        found += re.findall(r"\w*dlrs_\w+|DLRS_\w+|->|NULL", without)
    if "[DLRS_" in said and not (remedy and re.search(r"\w{3,}.*[.?]$", remedy[1])):
        found.append("no remedy")
    return found


@pytest.mark.parametrize("cause, wanted", ROWS, ids=[cause for cause, _ in ROWS])
def test_a_cause_has_its_message_which_says_what_to_do_in_its_readers_language(cause, wanted):
    assert message(cause) == wanted and not fault(wanted, in_python=not cause.startswith("c."))


@pytest.mark.skipif("BLESS" not in os.environ, reason="only on request")
def test_messages_are_written_anew():
    text = TABLE.read_text()
    for cause in re.findall(r"^(?! |#)(.+)$", text, re.M):
        text = re.sub(rf"^{re.escape(cause)}\n(    .*\n)?",
                      lambda _, cause=cause: f"{cause}\n    {message(cause)}\n", text, flags=re.M)
    TABLE.write_text(text)


def test_the_table_has_rows_of_both_languages():
    in_c = [cause for cause, _ in ROWS if cause.startswith("c.")]
    assert len(in_c) > 20 and len(ROWS) - len(in_c) > 40


def test_what_is_wrong_with_a_message_is_seen():
    assert fault("ValueError: f: x (value 1) [DLRS_BAD_ARG]. ", True) == ["no remedy"]
    assert fault("ValueError: tensor->flags: cast by dlrs_cast", True) == ["->", "dlrs_cast"]
    assert not fault("ValueError: dlrs_f: tensor->flags: y [DLRS_FLAGS]. Clear it.", False)


def parts_of(address):
    """An address and its halves, and what is left of it in blocks of powers of two."""
    return {address, address >> 32, address & 0xFFFFFFFF,
            *(address % (1 << bits) for bits in range(12, 48))
            } - set(range(1 << 12)) - {1 << bits for bits in range(64)}


def test_no_message_holds_a_part_of_an_address():
    memory = np.zeros(1 << 12, np.uint8)
    memory = memory[1 + -memory.ctypes.data % 64:]
    pointer, legacy, out, shape = C().new(2, 3), C().legacy(), C().out, C().numbers(2)
    plain = abi.DLTensor(data=memory.ctypes.data, device=CPU, ndim=1, dtype=dtype(1, 8),
                         shape=c.cast(shape, c.POINTER(c.c_int64)))
    calls = [(abi.lib.dlrs_validate_managed, legacy, 3),
             (abi.lib.dlrs_import_take, c.pointer(legacy), None, out)]
    # Where a struct starts with its size, another one that starts with a pointer or half of it.
    for number in memory.ctypes.data, memory.ctypes.data >> 32:
        wrong = (c.c_uint64 * 32)(*[number] * 32)
        alloc, copy, take = (c.cast(wrong, c.POINTER(getattr(abi, f"dlrs_{of}_options")))
                             for of in ("alloc", "copy", "import"))
        calls += [(abi.lib.dlrs_tensor_new, shape, 1, F32, CPU, alloc, out),
                  (abi.lib.dlrs_copy, pointer, pointer, copy),
                  (abi.lib.dlrs_import_take, c.pointer(pointer), take, out)]
    for bits in range(4, 31):
        options = C().options("dlrs_import_options", align_bytes=1 << bits, copy=-1)
        wrapped = C().out
        abi.call(abi.lib.dlrs_tensor_wrap, c.byref(plain), 0, None, None, wrapped)
        calls.append((abi.lib.dlrs_import_take, wrapped, options, out))
    addresses = [memory.ctypes.data, c.addressof(legacy.contents), c.addressof(pointer.contents),
                 legacy.contents.version.major | legacy.contents.version.minor << 32]
    for call in calls:
        with pytest.raises(Exception) as raised:
            abi.call(*call)
        details = raised.value.details
        numbers = {*map(int, re.findall(r"\d+", str(raised.value))), details.value, details.limit}
        assert not numbers & set().union(*map(parts_of, addresses)), (call, numbers)
