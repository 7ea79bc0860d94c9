"""nanobind's results of the same calls: run with two builds and compare.

    python differential.py answers          one JSON object: call -> result
    python differential.py compare A B      A is the original nanobind; each call that differs must
                                            be in differences.txt, with the reason
"""
import array
import ctypes
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from answers import STRANGE, Producer, layouts, main, right_structs, wrong_structs  # noqa: E402

DTYPES = "? i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 g F D G M8[s] O S3 U3 V4 >i4 >f8".split()
TAKERS = ["any", "read", "float", "const double", "complex", "bool", "int64, 2 axes", "C",
          "read F", "C or F, 3 axes", "2, any, 4", "float F of 2, 3", "CPU", "CUDA"]


def module():
    import differential_ext
    return differential_ext


def plain(said):
    return {name: value.hex() if isinstance(value, bytes) else value
            for name, value in said.items()}


def take(answers, name, make, takers=TAKERS, add=None):
    """make() is called for each: a capsule can be consumed once."""
    for taker in takers:
        for how in (taker, f"{taker}, as it is"):
            call = getattr(module(), how)
            (add or answers.add)(f"{how}: {name}", lambda: plain(call(make())))


def imports(np, answers):
    for dtype in DTYPES:
        for layout, a in layouts(np, dtype):
            take(answers, f"{dtype} {layout}", lambda: a)
            for version in (None, (1, 0)):
                take(answers, f"capsule {version} of {dtype} {layout}",
                     lambda: a.__dlpack__(max_version=version), ["any", "read", "float", "C"])
    for dtype in "f4 i8 F".split():
        for layout, a in layouts(np, dtype):
            for name in ("numpy", "copy", "capsule", "same"):
                answers.add(f"{name} of {dtype} {layout}", lambda: getattr(module(), name)(a))


def objects(np, answers):
    x = np.arange(6.).reshape(2, 3)

    class Old(np.ndarray):
        def __dlpack__(self, stream=None):
            return super().__dlpack__()

    class OnlyVersioned(np.ndarray):
        def __dlpack__(self, *, max_version, **others):
            return super().__dlpack__(max_version=max_version)

    class Property:
        __dlpack__ = property(lambda self: x.__dlpack__)

    mutable = bytearray(b"abcd" * 6)
    for name, make in {
            "list": lambda: [1], "bytes": lambda: b"abcd", "bytearray": lambda: mutable,
            "array": lambda: array.array("d", [1, 2]), "None": lambda: None,
            "scalar": lambda: np.float32(1), "int": lambda: 1, "str": lambda: "a",
            "memoryview": lambda: memoryview(b"ab"), "type": lambda: np.ndarray,
            "memoryview of floats": lambda: memoryview(x),
            "reversed": lambda: memoryview(mutable)[::-2],
            "cast": lambda: memoryview(mutable).cast("f"),
            "cast to two axes": lambda: memoryview(mutable).cast("q", (1, 3)),
            "structs": lambda: (ctypes.c_int * 3)(1, 2, 3),
            "big-endian structs": lambda: (ctypes.c_int.__ctype_be__ * 2)(),
            "raises": lambda: Producer(lambda _: 1 / 0),
            "gives None": lambda: Producer(lambda _: None),
            "gives an array": lambda: Producer(lambda _: x), "old": lambda: x.view(Old),
            "only versioned": lambda: x.view(OnlyVersioned), "property": Property,
            "gives the legacy one": lambda: Producer(lambda _: x.__dlpack__()),
            "gives the versioned one":
                lambda: Producer(lambda _: x.__dlpack__(max_version=(1, 0)))}.items():
        take(answers, name, make, add=answers.add_apart)
        answers.add(f"is one: {name}", lambda: getattr(module(), "is one")(make()))
    for version in (None, (1, 0)):
        capsule = x.__dlpack__(max_version=version)
        for turn in ("first", "second"):
            answers.add(f"one capsule, {version}, {turn}", lambda: plain(module().any(capsule)))


def structs(np, answers):
    for name, produced in right_structs(random.Random(1), 300):
        take(answers, name, lambda: produced, ["any", "read", "const double", "C", "read F"])
        take(answers, f"capsule of {name}", lambda: produced.__dlpack__(), ["any", "read"])
    for name, produced in wrong_structs():
        take(answers, name, lambda: produced, ["any", "read", "float", "C"], answers.add_apart)


MEMORY = (ctypes.c_double * 64)(*range(64))


def made(kind, shape=(2, 3), strides=(), dtype=(2, 64, 1), device=(1, 0), order="C", offset=0):
    """A C++ array over memory that lives as long as this module."""
    return getattr(module(), kind)(ctypes.addressof(MEMORY), module(), list(shape), list(strides),
                                   list(dtype), list(device), order, offset)


def numbers(array):
    return "an object" if array.dtype == object else array


def seen_view(view):
    steps = [s for s, n in zip(view.strides, view.shape) if n > 1 and view.nbytes > 0]
    return {"format": view.format, "itemsize": view.itemsize, "shape": view.shape,
            "strides": steps, "readonly": view.readonly, "nbytes": view.nbytes,
            "bytes": view.tobytes().hex()}


def exports(np, answers):
    forms = {"C": {}, "F": dict(order="F"), "any order": dict(order="A"),
             "steps": dict(strides=(1, 4)), "backwards": dict(strides=(-3, -1), offset=80),
             "offset": dict(offset=16), "0-d": dict(shape=()), "empty": dict(shape=(0, 3)),
             "one": dict(shape=(1, 1), strides=(7, 9)), "broadcast": dict(strides=(0, 1))}
    dtypes = {"float64": (2, 64, 1), "float32": (2, 32, 1), "float16": (2, 16, 1),
              "int8": (0, 8, 1), "int64": (0, 64, 1), "uint16": (1, 16, 1), "bool": (6, 8, 1),
              "bfloat16": (4, 16, 1), "complex64": (5, 64, 1), "complex128": (5, 128, 1),
              "complex32": (5, 32, 1), "float8": (10, 8, 1), "float32x2": (2, 32, 2),
              "int128": (0, 128, 1)}
    for kind in ("array", "constant", "bare", "bare constant", "memoryview", "constant of NumPy"):
        for form, options in forms.items():
            for name, dtype in dtypes.items():
                def make():
                    return made(kind, dtype=dtype, **options)
                what = f"{kind} {name} {form}"
                if kind.startswith("bare"):
                    answers.add(what, make)
                elif kind == "memoryview":
                    answers.add(what, lambda: seen_view(make()))
                elif kind == "constant of NumPy":
                    answers.add(what, lambda: numbers(make()))
                else:
                    answers.add(f"device of {what}", lambda: list(make().__dlpack_device__()))
                    answers.add(f"view of {what}", lambda: seen_view(memoryview(make())))
                    answers.add(f"np.asarray of {what}", lambda: numbers(np.asarray(make())))
                    answers.add(f"np.frombuffer of {what}", lambda: np.frombuffer(make(), "u1"))
                    answers.add(f"np.from_dlpack of {what}", lambda: np.from_dlpack(make()))
                    for version in (None, (0, 8), (1, 0), (1, 9), (2, 0)):
                        answers.add(f"capsule {version} of {what}",
                                    lambda: make().__dlpack__(max_version=version))
    for device in ((2, 0), (3, 0), (8, 0), (10, 1), (13, 0), (14, 2)):
        answers.add(f"array on {device}", lambda: made("array", device=device).__dlpack__())
        answers.add(f"device of array on {device}",
                    lambda: list(made("array", device=device).__dlpack_device__()))
        answers.add(f"view of array on {device}", lambda: memoryview(made("array", device=device)))


def arguments(np, answers):
    for kind in ("array", "constant"):
        x = made(kind)
        for name in ("max_version", "stream", "dl_device", "copy"):
            for value in STRANGE:
                answers.add(f"{kind}.__dlpack__ {name}={value!r}",
                            lambda: x.__dlpack__(**{name: value}))
        answers.add(f"{kind}.__dlpack__ positional", lambda: x.__dlpack__(None))
        answers.add(f"{kind}.__dlpack__ unknown keyword", lambda: x.__dlpack__(foo=1))
        answers.add(f"{kind}.__dlpack_device__ argument", lambda: x.__dlpack_device__(1))


if __name__ == "__main__":
    main(imports, objects, structs, exports, arguments)
