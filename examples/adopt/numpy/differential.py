"""NumPy's results of the same calls: run with two builds and compare.

    python differential.py answers          one JSON object: call -> result
    python differential.py compare A B      A is the original NumPy; each call that differs must be
                                            in differences.txt, with the reason
"""
import array
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from answers import (  # noqa: E402
    STRANGE, Producer, layouts, main, right_structs, struct, wrong_structs)

DTYPES = ("? i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 g F D G M8[s] m8[s] O S3 S0 U3 V4 >i4 >f8 >i1 "
          "T").split() + [[("a", "i4")]]


def exports(np, answers):
    for dtype in DTYPES:
        for layout, a in layouts(np, dtype):
            for version in (None, (0, 8), (1, 0), (1, 9), (2, 0)):
                for copy in (None, True, False):
                    answers.add(f"export {dtype} {layout} {version} copy={copy}",
                                lambda: a.__dlpack__(max_version=version, copy=copy))
            answers.add(f"round trip {dtype} {layout}", lambda: np.from_dlpack(a))
            answers.add(f"device of {dtype} {layout}", lambda: list(a.__dlpack_device__()))


def arguments(np, answers):
    x = np.arange(6).reshape(2, 3)
    for name in ("max_version", "stream", "dl_device", "copy"):
        for value in STRANGE:
            answers.add(f"__dlpack__ {name}={value!r}", lambda: x.__dlpack__(**{name: value}))
    answers.add("__dlpack__ copy=array", lambda: x.__dlpack__(copy=np.array([1, 2])))
    answers.add("__dlpack__ positional", lambda: x.__dlpack__(None))
    answers.add("__dlpack__ unknown keyword", lambda: x.__dlpack__(foo=1))
    answers.add("__dlpack_device__ argument", lambda: x.__dlpack_device__(1))
    for name in ("device", "copy"):
        for value in STRANGE:
            answers.add(f"from_dlpack {name}={value!r}", lambda: np.from_dlpack(x, **{name: value}))
    for copy in (None, True, False):
        answers.add(f"shared, copy={copy}",
                    lambda: bool(np.shares_memory(x, np.from_dlpack(x, copy=copy))))
        asked = []
        answers.add(f"asked, copy={copy}", lambda: np.from_dlpack(
            Producer(lambda kw: asked.append(kw) or x.__dlpack__(**kw)), copy=copy, device="cpu"))
        answers.add(f"asked of the producer, copy={copy}",
                    lambda: "; ".join(" ".join(sorted(kw)) for kw in asked))


class Interface:
    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__


def objects(np, answers):
    x = np.arange(6).reshape(2, 3)

    def used(_):
        capsule = x.__dlpack__(max_version=(1, 0))
        np.from_dlpack(Producer(lambda _: capsule))
        return capsule

    class Old(np.ndarray):
        def __dlpack__(self, stream=None):
            return super().__dlpack__()

    for name, thing in {
            "list": [1], "bytes": b"abcd", "array": array.array("i", [1, 2]), "None": None,
            "scalar": np.float32(1), "capsule": x.__dlpack__(max_version=(1, 0)),
            "array interface": Interface(x), "type": np.ndarray, "memoryview": memoryview(b"ab"),
            "raises": Producer(lambda _: 1 / 0), "gives None": Producer(lambda _: None),
            "gives an array": Producer(lambda _: x), "used": Producer(used), "old": x.view(Old),
            "ignores copy": Producer(lambda _: x.__dlpack__(max_version=(1, 0)))}.items():
        for copy in (None, True, False):
            answers.add(f"from {name}, copy={copy}", lambda: np.from_dlpack(thing, copy=copy))


def structs(np, answers):
    for name, produced in right_structs(random.Random(1), 300):
        answers.add(name, lambda: np.from_dlpack(produced))
    for name, produced in wrong_structs():
        answers.add_apart(name, lambda: np.from_dlpack(produced))


def registered(np, answers):
    """After all others, since nothing is ever taken out of the register."""
    import ml_dtypes  # registers nothing by itself

    rows = {"bfloat16": (4, 16), "float8_e3m4": (7, 8), "float8_e4m3": (8, 8),
            "float8_e4m3fn": (10, 8), "float8_e5m2": (12, 8), "float8_e8m0fnu": (14, 8)}
    dtypes = {key: np.dtype(getattr(ml_dtypes, name)) for name, key in rows.items()}
    dtypes |= {(0, 24): np.dtype("S3"), (1, 128): np.dtype("V16"), (5, 32): np.dtype("U1"),
               (18, 32): np.dtype([("re", "V2"), ("im", "V2")]), (123, 24): np.dtype("V3"),
               (2, 64): np.dtype("M8[s]"), (6, 8): np.dtype("?"), (255, 248): np.dtype("V31")}
    for step in ("before", "after"):
        for key, dtype in dtypes.items():
            for layout, a in layouts(np, dtype):
                for version in (None, (1, 0)):
                    answers.add(f"{step}: export {dtype} as {key} {layout} {version}",
                                lambda: a.__dlpack__(max_version=version))
                    answers.add(f"{step}: copy {dtype} as {key} {layout} {version}",
                                lambda: a.__dlpack__(max_version=version, copy=True))
                answers.add(f"{step}: round trip {dtype} as {key} {layout}",
                            lambda: np.from_dlpack(a))
            answers.add(f"{step}: dtype of {dtype} as {key}",
                        lambda: str(np.from_dlpack(np.zeros(3, dtype)).dtype))
            for lanes in (1, 2):
                produced = struct(code=key[0], bits=key[1], lanes=lanes)
                answers.add(f"{step}: struct of {key} lanes {lanes}",
                            lambda: np.from_dlpack(produced))
            if step == "before":
                answers.add(f"register {dtype} as {key}",
                            lambda: np.dtypes.register_dlpack_dtype(key, dtype))
                answers.add(f"register {dtype} as {key} again",
                            lambda: np.dtypes.register_dlpack_dtype(key, np.dtype(dtype.str)))
                for other in ((9, key[1]), (key[0], 8), (256, key[1]), (-1, key[1])):
                    answers.add(f"register {dtype} as {other} after {key}",
                                lambda: np.dtypes.register_dlpack_dtype(other, dtype))
    for key in ((2,), (2, 2, 2), None, ("a", 8), (2.5, 8), (2**70, 8), [4, 16], (4, 256),
                (True, 8)):
        for dtype in ("S1", np.dtype("S1"), np.dtype("V32"), np.dtype("S0"), np.float64, None):
            answers.add(f"register {dtype!r} as {key}",
                        lambda: np.dtypes.register_dlpack_dtype(key, dtype))
    replace = np._core._multiarray_umath._dlpack_registry_replace
    old = replace({}, {})
    answers.add("registers", lambda: [sorted(map(str, part.items())) for part in old])
    answers.add("an emptied register", lambda: np.from_dlpack(np.zeros(3, "S3")))
    answers.add("a register that is none", lambda: replace({}, []))
    replace(*old)
    answers.add("the register again", lambda: np.from_dlpack(np.zeros(3, "S3")))


if __name__ == "__main__":
    main(exports, arguments, objects, structs, registered)
