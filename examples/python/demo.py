"""Takes tensors of every framework at hand into libdlpack_rs and back, checking each step.

Run demo.sh. Every row is one tensor; the columns, from left to right:

  protocol   the version the framework exported, or "legacy"
  zero-copy  whether the library has the framework's own memory
  flags      of the tensor taken: R = READ_ONLY, C = IS_COPIED, - = none
  printed    the library's text, read again, is what NumPy has
  legacy     the struct turned legacy and back: same memory, values intact; "refused R" where
             READ_ONLY would be lost, then done by the policy that drops it
  shared     a second reference, and the data freed only with the last one
  clone      flags of a copy: always C, never R, in memory of its own, values equal
  NumPy      NumPy has the tensor back: same memory, same values, R = read-only as it was
  home       so has the framework itself: the "same" memory; "a clone" where it asks for a legacy
             tensor and the data is read-only; "copied" where it copies by its own decision
  deleters   callbacks chained to the tensor that ran, each exactly once
"""

import gc
import importlib
import sys
import warnings
from ctypes import byref, c_char, c_size_t, py_object
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2] / "python"))  # or: pip install dlpack_rs
import dlpack_rs
from dlpack_rs import abi

COLUMNS = ("framework", "tensor", "protocol", "zero-copy", "flags", "printed", "legacy", "shared",
           "clone", "NumPy", "home", "deleters")


class Wrong(Exception):
    """A step did not give the required result."""


def must(condition, what):
    if not condition:
        raise Wrong(what)


# --- Tensors of each framework: its from_dlpack, and [(label, object, the same values)] ---------


def arrays():
    base = np.arange(24, dtype=np.float32).reshape(4, 6) / 8
    frozen = base.copy()
    frozen.flags.writeable = False
    return {"float32 (4, 6)": base, "negative strides": base[::-1, ::-2], "transposed": base.T,
            "broadcast": np.broadcast_to(base[0], (3, 6)), "read-only": frozen,
            "zero-dimensional": np.array(2.5), "size zero": np.zeros((0, 3)),
            "int16, large": np.arange(5000, dtype=np.int16).reshape(50, 100),
            "complex128": np.array([1 + 2j, complex(np.nan, -np.inf)]),
            "bool": np.array([[True, False], [False, True]]),
            "unaligned float64": np.zeros(41, dtype=np.uint8)[1:].view(np.float64)}


# Those that every framework supports.
PLAIN = ("float32 (4, 6)", "zero-dimensional", "int16, large", "size zero", "bool")


def of_plain(make, also=(), least=0):
    """A framework's tensors; `least` bytes are too many for an element."""
    return [(label, make(a), a) for label, a in arrays().items()
            if label in (*PLAIN, *also) and not (least and a.dtype.itemsize >= least)]


class Old:
    """A framework from before DLPack 1.0: __dlpack__ has no keywords, the tensor is legacy."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self):
        return self.array.__dlpack__()


def numpy():
    base = arrays()["float32 (4, 6)"]
    return np.from_dlpack, [*((label, a, a) for label, a in arrays().items()),
                            ("float32 (4, 6), legacy", Old(base), base)]


def tvm_ffi():
    import tvm_ffi

    return tvm_ffi.from_dlpack, of_plain(tvm_ffi.from_dlpack, ["transposed"])


def torch():
    import torch

    strided = torch.arange(12.0).reshape(3, 4).T[1:]
    return torch.from_dlpack, [*of_plain(lambda a: torch.from_numpy(a.copy())),
                               ("transposed", strided, strided.numpy())]


def jax():
    import jax.numpy

    return jax.numpy.from_dlpack, of_plain(jax.numpy.asarray, least=8)  # by default no 64 bits


def tensorflow():
    import tensorflow as tf

    return (lambda tensor: tf.experimental.dlpack.from_dlpack(tensor.__dlpack__()),
            of_plain(tf.constant))


# --- The steps ---------------------------------------------------------------------------------


class Exported:
    """An object with a capsule created earlier."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule


def out_of(function, *arguments):
    """The tensor that a function of the C ABI writes to its last argument."""
    out = abi.Versioned()
    abi.call(function, *arguments, byref(out))
    return out


def as_tensor(pointer):
    """Python's tensor of one of the C ABI, which is consumed."""
    capsule = py_object()
    abi.call(abi.pylib.dlrs_py_capsule_new_take, byref(pointer), byref(capsule))
    return dlpack_rs.from_dlpack(Exported(abi.new_object(capsule)))


def address_of(tensor):
    return tensor.data and tensor.data + tensor.byte_offset


def letters(flags):
    return "".join(name for bit, name in ((1, "R"), (2, "C"), (4, "P")) if flags & bit) or "-"


def same(a, b):
    return np.array_equal(a, b, equal_nan=b.dtype.kind in "fc")


def prints(pointer, expected):
    """Whether what a tensor is printed as, read again, is what it should be, where all is shown."""
    nbytes = c_size_t()
    abi.call(abi.lib.dlrs_managed_to_string, pointer, None, None, 0, byref(nbytes))
    text = (c_char * (nbytes.value + 1))()
    abi.call(abi.lib.dlrs_managed_to_string, pointer, None, text, len(text), None)
    values = text.value.decode().partition("\n")[2]
    words = {"nan": np.nan, "inf": np.inf, "nanj": complex(0, np.nan), "infj": complex(0, np.inf)}
    return "..." in values or same(np.array(eval(values, {"__builtins__": {}, **words}),
                                            expected.dtype).reshape(expected.shape), expected)


def chain(pointer, ran):
    """Three callbacks at the tensor's end, each with a context: a number. The caller keeps the
    function, since ctypes does not."""
    function = abi.dlrs_free_fn(ran.append)
    for number in (1, 2, 3):
        abi.call(abi.lib.dlrs_attach, pointer, function, number, abi.DLRS_AFTER_FREE)
    return function


def exchange(source, expected, home, row):
    """Runs every step on one tensor, noting each result in `row`."""
    capsule, ran = abi.capsule.request(source), []
    theirs = abi.capsule.managed(capsule)
    version = getattr(theirs, "version", None)
    row["protocol"] = f"{version.major}.{version.minor}" if version else "legacy"
    address = address_of(theirs.dl_tensor)
    pointer = out_of(abi.pylib.dlrs_py_import, Exported(capsule), None)
    flags = pointer.contents.flags
    row["flags"] = letters(flags)
    row["zero-copy"] = "yes" if expected.size else "(empty)"
    must(not expected.size or address_of(pointer.contents.dl_tensor) == address, "a copy was made")
    abi.call(abi.lib.dlrs_validate_managed, pointer, abi.DLRS_LEVEL_STRICT)
    must(prints(pointer, expected), "other values are printed")
    row["printed"] = "= NumPy"
    kept = chain(pointer, ran)

    legacy = abi.Legacy()
    row["legacy"] = "ok"
    try:
        abi.call(abi.lib.dlrs_to_legacy_take, byref(pointer), abi.DLRS_LEGACY_REFUSE, byref(legacy))
        must(not flags & abi.READ_ONLY, "read-only data left through the legacy struct")
    except BufferError:
        row["legacy"] = "refused R"
        abi.call(abi.lib.dlrs_to_legacy_take, byref(pointer), abi.DLRS_LEGACY_DROP, byref(legacy))
    pointer = out_of(abi.lib.dlrs_from_legacy_take, byref(legacy), flags)
    must(pointer.contents.flags == flags and prints(pointer, expected), "legacy lost something")

    abi.lib.dlrs_release(out_of(abi.lib.dlrs_retain, pointer))
    must(abi.lib.dlrs_ref_count(pointer) == 1 and not ran, "the second reference freed the tensor")
    row["shared"] = "ok"

    row["clone"] = cloned(pointer, expected)
    tensor = as_tensor(pointer)
    must(not expected.size or tensor.data_ptr == address, "Python has other memory")
    array = np.from_dlpack(tensor)
    must(same(array, expected), "NumPy got other values")
    must(not array.size or array.ctypes.data == address, "NumPy got other memory")
    must(not array.size or array.flags.writeable != tensor.readonly, "NumPy got another READ_ONLY")
    row["NumPy"] = "same" if array.flags.writeable else "same, R"
    row["home"] = back_home(tensor, expected, home)

    must(not ran, "a deleter ran too early")
    del array, tensor, capsule
    gc.collect()
    row["deleters"] = f"{len(ran)} of 3"
    must(sorted(ran) == [1, 2, 3], f"deleters ran as {ran}")
    del kept


def cloned(pointer, expected):
    ran = []
    clone = out_of(abi.lib.dlrs_clone, pointer, abi.DLDevice(abi.kDLCPU, 0), None)
    kept = chain(clone, ran)
    flags = clone.contents.flags
    must(flags == abi.IS_COPIED, f"a clone has flags {flags}")
    there = address_of(clone.contents.dl_tensor)
    must(not there or there != address_of(pointer.contents.dl_tensor), "a clone shares memory")
    array = np.from_dlpack(as_tensor(clone))
    must(same(array, expected) and not ran, "a clone has other values, or is freed")
    del array
    must(sorted(ran) == [1, 2, 3], f"the clone's deleters ran as {ran}")
    del kept
    return letters(flags)


def back_home(tensor, expected, home):
    given, result = tensor, "same"
    try:
        theirs = home(tensor)
    except BufferError:  # it requests a legacy tensor, which cannot be read-only
        given, result = tensor.copy(), "a clone"
        theirs = home(given)
    ours = dlpack_rs.from_dlpack(theirs)
    must(same(np.from_dlpack(ours), expected), "the framework got other values")
    return result if ours.data_ptr == given.data_ptr else "copied"


def main():
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        print(f"left out: NumPy {np.__version__} has no DLPack 1.0; 2.1, for Python 3.10, has it")
        return 0
    warnings.filterwarnings("ignore")
    rows, wrong = [], []
    for make in (numpy, tvm_ffi, torch, jax, tensorflow):
        try:
            name = f"{make.__name__} {importlib.import_module(make.__name__).__version__}"
        except ImportError:
            rows.append({"framework": make.__name__, "tensor": "(not installed here)"})
            continue
        home, cases = make()
        for label, source, expected in cases:
            row = {"framework": name, "tensor": label}
            rows.append(row)
            before = sys.getrefcount(expected)
            try:
                exchange(source, expected, home, row)
                gc.collect()
                must(sys.getrefcount(expected) == before, "a reference to the array was lost")
            except Exception as error:
                wrong.append(f"{name}, {label}: {type(error).__name__}: {error}")
                row["deleters"] = "WRONG"
    show(rows)
    for line in wrong:
        print("WRONG:", line)
    exchanged = sum("protocol" in row for row in rows)
    version = abi.lib.dlrs_version_string().decode()
    print(f"libdlpack_rs {version}, Python {sys.version.split()[0]}: {exchanged} tensors "
          f"exchanged, {len(wrong)} wrong")
    return bool(wrong)


def show(rows):
    widths = [max(len(name), *(len(row.get(name, "")) for row in rows)) for name in COLUMNS]
    for row in [dict(zip(COLUMNS, COLUMNS)), *rows]:
        cells = (row.get(name, "").ljust(width) for name, width in zip(COLUMNS, widths))
        print("  ".join(cells).rstrip())


if __name__ == "__main__":
    sys.exit(main())
