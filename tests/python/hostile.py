"""Hostile objects at random: hostile.py SECONDS [SEED]

dlpack_rs imports objects whose `__dlpack__`, `__dlpack_device__`, `__array_interface__` and
exchange tables return anything but valid results. Each is accepted or rejected with an exception
that gives the reason; nothing crashes, no exception is a SystemError, and no reference leaks. Ends
with `N passed, N failed`.
"""

import ctypes
import gc
import random
import sys
import time

import dlpack_rs

SIDE = 64
MEMORY = (ctypes.c_char * (SIDE * 64))()
ADDRESS = ctypes.addressof(MEMORY)
REFUSALS = (TypeError, ValueError, BufferError, AttributeError, OverflowError, RuntimeError,
            NotImplementedError, MemoryError, KeyError, IndexError)


class Own(Exception):
    """An exception of the hostile object: it must be propagated."""


def capsule(name):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ADDRESS, name, None)


def anything(draw):
    """A value that no protocol expects."""
    return draw.choice([
        lambda: None, lambda: draw.getrandbits(130) - 2**129, lambda: -1, lambda: 0, lambda: 2**31,
        lambda: draw.random(), lambda: float("nan"), lambda: "text", lambda: b"\0", lambda: (),
        lambda: (1,), lambda: (1, 0), lambda: (2, 0), lambda: (1, 2**40), lambda: (1, 0, 0),
        lambda: ("1", 0), lambda: [], lambda: {}, lambda: object(), lambda: type, lambda: True,
        lambda: capsule(None), lambda: capsule(b"other"), lambda: capsule(b"used_dltensor"),
        lambda: capsule(b"used_dltensor_versioned"), lambda: (1.0, None), lambda: ((), ()),
    ])()


def interface(draw):
    """An array interface with some wrong fields."""
    shape = tuple(draw.choice([0, 1, 2, 3, -1, 2**62, 2**63, "3", None, 1.5])
                  if draw.random() < 0.3 else draw.randrange(4) for _ in range(draw.randrange(5)))
    made = {"version": 3, "typestr": "<f4", "shape": shape, "data": (ADDRESS, False)}
    for key in ("version", "typestr", "shape", "data", "strides", "descr", "mask", "stream"):
        if draw.random() < 0.15:
            made[key] = anything(draw)
    if draw.random() < 0.2:
        made["typestr"] = draw.choice(["|b1", ">i8", "<U4", "|O", "<M8[ns]", "<f3", "|V8", "<c16"])
    if draw.random() < 0.3:
        made["strides"] = tuple(draw.choice([4, -4, 0, 1, 2**62, None]) for _ in shape)
    if draw.random() < 0.1:
        del made[draw.choice(list(made))]
    return anything(draw) if draw.random() < 0.1 else made


def hostile(draw):
    """An object of a new class."""
    def method(*given, **named):
        if draw.random() < 0.2:
            raise Own
        if draw.random() < 0.2:
            gc.collect()
        return anything(draw)

    def changed(self):
        if draw.random() < 0.1:
            raise Own
        return interface(draw)

    body = {}
    for name in ("__dlpack__", "__dlpack_device__"):
        if draw.random() < 0.6:
            body[name] = method if draw.random() < 0.8 else anything(draw)
    for name in ("__array_interface__", "__cuda_array_interface__"):
        if draw.random() < 0.3:
            body[name] = property(changed)
    for name in ("__dlpack_c_exchange_api__", "__array_struct__", "__buffer__", "__array__"):
        if draw.random() < 0.2:
            body[name] = anything(draw)
    if draw.random() < 0.05:
        body["__getattr__"] = method
    return type("Hostile", (), body)()


def take(draw, thing):
    """Imports it, and reads the tensor's properties, but no elements."""
    named = {}
    if draw.random() < 0.3:
        named["copy"] = draw.choice([None, False])  # a copy would read invalid addresses
    if draw.random() < 0.2:
        named["device"] = anything(draw)
    if draw.random() < 0.2:
        named["stream"] = anything(draw)
    tensor = dlpack_rs.from_dlpack(thing, **named)
    for name in ("shape", "strides", "dtype", "device", "size", "nbytes", "ndim"):
        getattr(tensor, name)
    del tensor


def main(seconds, seed):
    print(f"hostile.py: seed {seed}", flush=True)
    end, failed, made, taken = time.monotonic() + seconds, 0, 0, 0
    while time.monotonic() < end and failed < 5:
        draw = random.Random(seed * 1_000_003 + made)
        thing = hostile(draw)
        before = sys.getrefcount(thing)
        try:
            take(draw, thing)
            taken += 1
        except (Own, *REFUSALS) as refusal:
            if not isinstance(refusal, Own) and not str(refusal):
                print(f"case {made}: {type(refusal).__name__} without a word")
                failed += 1
        except BaseException as wrong:  # SystemError above all
            print(f"case {made}: {type(wrong).__name__}: {wrong}")
            failed += 1
        gc.collect(0)
        if sys.getrefcount(thing) != before:
            print(f"case {made}: {sys.getrefcount(thing)} references, not {before}")
            failed += 1
        made += 1
    print(f"{made} objects, {taken} of them taken")
    print(f"{made - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns()))
