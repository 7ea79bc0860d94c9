"""Shared by the differential tests of this folder: producers of any struct, results, comparison.

A result is what can be observed: the fields of a struct and its bytes, or the type of an exception.
Calls with invalid structs run in separate processes, because they may crash.
"""
import ctypes
import json
import os
import re
import signal
import sys
from pathlib import Path

I64P = ctypes.POINTER(ctypes.c_int64)


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", I64P), ("strides", I64P), ("byte_offset", ctypes.c_uint64)]


class Legacy(ctypes.Structure):
    _fields_ = [("t", Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("t", Tensor)]


api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetName.restype = ctypes.c_char_p
api.PyCapsule_GetName.argtypes = [ctypes.py_object]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

# Values for any argument of `__dlpack__`.
STRANGE = [0, 1, 2, -1, 2**70, "a", "cpu", 1.5, None, (), (1,), (1, 2, 3), [1, 0], (-1, 0),
           (2**70, 0), ("a", 0), (1, "x"), (1.5, 0), (0, 9), (1, 0), (1, 1), (2, 0), (10, 0),
           (99, 0), (1, 2**40), b"x", True, False]


class Producer:
    """An object with `__dlpack__` with a given behaviour."""

    def __init__(self, answer, device=(1, 0)):
        self.answer, self.device = answer, device

    def __dlpack__(self, **asked):
        return self.answer(asked)

    def __dlpack_device__(self):
        return self.device


def seen_array(np, a):
    # An unused stride is ignored.
    steps = [s for s, n in zip(a.strides, a.shape) if n > 1 and a.size > 0]
    return {"dtype": a.dtype.str, "shape": list(a.shape), "strides": steps,
            "writable": a.flags.writeable, "bytes": a.tobytes().hex()[:200],
            "device": list(a.__dlpack_device__())}


def seen_capsule(capsule):
    name = api.PyCapsule_GetName(capsule)
    kind = Versioned if name == b"dltensor_versioned" else Legacy
    managed = kind.from_address(api.PyCapsule_GetPointer(capsule, name))
    t = managed.t
    shape = t.shape[:t.ndim] if t.ndim else []
    size = 1
    for n in shape:
        size *= n
    steps = [t.strides[i] for i in range(t.ndim) if shape[i] > 1 and size > 0]
    first = ctypes.string_at(t.data + t.byte_offset, t.bits // 8).hex() if size else ""
    flags = [managed.major, managed.flags] if kind is Versioned else []
    return {"name": name.decode(), "flags": flags, "dtype": [t.code, t.bits, t.lanes],
            "shape": shape, "strides": steps, "device": [t.device_type, t.device_id],
            "first": first}


class Answers:
    def __init__(self, np):
        self.np, self.all = np, {}

    def say(self, call):
        try:
            answer = call()
        except BaseException as e:
            return type(e).__name__
        if isinstance(answer, self.np.ndarray):
            return seen_array(self.np, answer)
        return seen_capsule(answer) if type(answer).__name__ == "PyCapsule" else answer

    def add(self, name, call):
        assert name not in self.all, name
        self.all[name] = self.say(call)

    def add_apart(self, name, call):
        """In a separate process."""
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(theirs, json.dumps(self.say(call)).encode())
            os._exit(0)
        os.close(theirs)
        with os.fdopen(ours, "rb") as pipe:
            said = pipe.read()
        _, status = os.waitpid(child, 0)
        ended = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else None
        self.all[name] = ended or json.loads(said)


def layouts(np, dtype):
    count = 24
    flat = np.zeros(count, dtype)
    if flat.dtype.kind in "biuf":
        flat[:] = np.arange(count) % 2 if flat.dtype.kind == "b" else np.arange(count)
    a = flat.reshape(2, 3, 4)
    locked = a.copy()
    locked.flags.writeable = False
    itemsize = flat.dtype.itemsize
    yield "C", a
    yield "F", np.asfortranarray(a)
    yield "reversed", a[::-1, :, ::-2]
    yield "transposed", a.transpose(1, 2, 0)
    yield "broadcast", np.broadcast_to(a[:1, :1], (5, 3, 4))
    yield "empty", a[:, :0]
    yield "empty with steps", a[:, :0, ::2]
    yield "0-d", a[1, 1, 1:2].reshape(())
    yield "64 axes", flat[:1].reshape((1,) * 64)
    yield "read-only", locked
    if flat.dtype.kind in "biufc":
        raw = np.zeros(itemsize * 4 + 1, "u1")
        yield "unaligned", raw[1:].view(flat.dtype)
        fields = np.zeros(4, [("a", flat.dtype), ("b", "i1")])["a"]
        yield "uneven", fields
        yield "uneven, one", fields[:1]
        yield "uneven, none", fields[:0]


KEPT = []


def struct(shape=(2, 3), strides=(3, 1), versioned=True, **fields):
    """A producer of a struct that owns nothing, with some of its fields as given."""
    memory = (ctypes.c_double * 512)(*range(512))
    extents = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    steps = None if strides is None else (ctypes.c_int64 * max(len(strides), 1))(*strides)
    t = Tensor(ctypes.addressof(memory), 1, 0, len(shape), 2, 64, 1, extents,
               steps if steps is None else ctypes.cast(steps, I64P), 0)
    managed = Versioned(1, 0, None, None, 0, t) if versioned else Legacy(t, None, None)
    for name, value in fields.items():
        setattr(managed if name in ("major", "minor", "flags") else managed.t, name, value)
    KEPT.append((memory, extents, steps, managed))
    name = b"dltensor_versioned" if versioned else b"dltensor"
    return Producer(lambda _: api.PyCapsule_New(ctypes.addressof(managed), name, None),
                    (managed.t.device_type, managed.t.device_id))


def right_structs(rng, count):
    """(name, producer)s of valid tensors."""
    types = [(0, 8), (0, 16), (0, 32), (0, 64), (1, 8), (1, 16), (1, 32), (1, 64), (2, 16), (2, 32),
             (2, 64), (5, 64), (5, 128), (6, 8)]
    for i in range(count):
        shape = [rng.randrange(4) if rng.random() < .2 else rng.randrange(1, 4)
                 for _ in range(rng.randrange(5))]
        code, bits = rng.choice(types)
        steps = [rng.randrange(6) for _ in shape]
        offset = 8 * rng.randrange(4)
        fields = {"flags": rng.randrange(4)} if rng.random() < .7 else {}
        fields |= {"major": 1, "minor": rng.randrange(2)} if fields else {}
        yield f"random struct {i}", struct(
            shape, None if rng.random() < .3 else steps, bool(fields), code=code, bits=bits,
            byte_offset=offset, device_type=rng.choice((1, 1, 3, 11, 13)), **fields)


def wrong_structs():
    """(name, producer)s of invalid tensors."""
    wrong = {
        "major 2": dict(major=2), "major 0": dict(major=0), "minor 99": dict(minor=99),
        "lanes 0": dict(lanes=0), "lanes 4": dict(lanes=4), "bfloat16": dict(code=4, bits=16),
        "bits 7": dict(bits=7), "bits 0": dict(bits=0), "code 99": dict(code=99),
        "float4": dict(code=17, bits=4), "bool of 1 bit": dict(code=6, bits=1),
        "float of 128 bits": dict(bits=128), "CUDA": dict(device_type=2),
        "device 99": dict(device_type=99), "device 0": dict(device_type=0),
        "ndim 65": dict(shape=(1,) * 65, strides=(1,) * 65), "ndim -1": dict(ndim=-1),
        "ndim -2^31": dict(ndim=-2**31), "unknown flag": dict(flags=1 << 40),
        "extent -2": dict(shape=(-2, 3)), "extents 2^62": dict(shape=(2**62, 2**62)),
        "stride 2^62": dict(shape=(2, 2), strides=(2**62, 1)), "shape NULL": dict(shape_null=True),
        "strides NULL": dict(strides=None), "offset 2^64-1": dict(byte_offset=2**64 - 1),
        "data NULL": dict(data=None), "data NULL, none": dict(data=None, shape=(0, 3))}
    for name, fields in wrong.items():
        no_shape = fields.pop("shape_null", False)
        for versioned in (True, False):
            if not versioned and {"major", "minor", "flags"} & set(fields):
                continue
            produced = struct(versioned=versioned, **fields)
            if no_shape:
                KEPT[-1][3].t.shape = I64P()
            kind = "versioned" if versioned else "legacy"
            yield f"struct {name}, {kind}", produced


def main(*parts):
    """`answers`: the results of all parts; `compare BASE OURS`: see compare()."""
    if sys.argv[1] == "answers":
        import numpy as np
        answers = Answers(np)
        for part in parts:
            part(np, answers)
        print(json.dumps(answers.all))
        return
    sys.exit(compare(*(json.loads(Path(name).read_text()) for name in sys.argv[2:4])))


def compare(base, ours):
    """Prints differences that are missing from the test's differences.txt, then the counts."""
    listed = {}
    for line in Path(sys.argv[0]).with_name("differences.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            calls, theirs, here, _ = line.split(" | ")
            pattern = re.escape(calls).replace(r"\*", ".*")
            listed[line] = (re.compile(pattern), theirs, here)
    faults, used, differences = [], set(), 0
    for call in base.keys() | ours.keys():
        a, b = base.get(call), ours.get(call)
        if a == b:
            continue
        differences += 1
        if isinstance(a, str) or isinstance(b, str):
            a, b = (x if isinstance(x, str) else "an answer" for x in (a, b))
        elif isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
            differ = [name for name in a if a[name] != b[name]]
            a, b = ({name: x[name] for name in differ} for x in (a, b))
        found = [line for line, (pattern, theirs, here) in listed.items()
                 if pattern.fullmatch(call) and (theirs, here) == (str(a), str(b))]
        used.update(found)
        if not found:
            faults.append(f"{call} | {a} | {b}")
    faults += [f"listed, but not found: {line}" for line in listed if line not in used]
    print("\n".join(sorted(faults)), file=sys.stderr)
    print(json.dumps({"calls": len(base), "differences": differences, "kinds": len(listed),
                      "faults": len(faults)}))
    return bool(faults)
