"""Takes tensors of every framework at hand into libdlpack_rs and back, checking each step.

Run demo.sh. Every row is one tensor; the columns, from left to right:

  protocol   the version the framework exported, or "legacy"
  zero-copy  whether the library has the framework's own memory
  flags      of the tensor taken: R = READ_ONLY, C = IS_COPIED, - = none
  printed    the library's text, read again, is what NumPy has
  legacy     the struct turned legacy and back: same memory, no copy, values intact; "refused R"
             first where READ_ONLY would be lost, then done by the policy that drops it
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
from ctypes import cast

import numpy as np

import capsules
import dlpack_ctypes as dlpack

COLUMNS = ("framework", "tensor", "protocol", "zero-copy", "flags", "printed", "legacy", "shared",
           "clone", "NumPy", "home", "deleters")


NUMPY_KNOWS_FLAGS = np.lib.NumpyVersion(np.__version__) >= "2.1.0"  # DLPack 1.0


class Wrong(Exception):
    """A step did not give the required result."""


def must(condition, what):
    if not condition:
        raise Wrong(what)


# --- Tensors of each framework: (name, version, home, [(label, object, the same values)]) ------


def arrays():
    base = np.arange(24, dtype=np.float32).reshape(4, 6) / 8
    yield "float32 (4, 6)", base
    yield "negative strides", base[::-1, ::-2]
    yield "transposed", base.T
    yield "broadcast", np.broadcast_to(base[0], (3, 6))
    frozen = base.copy()
    frozen.flags.writeable = False
    yield "read-only", frozen
    yield "zero-dimensional", np.array(2.5)
    yield "size zero", np.zeros((0, 3))
    yield "int16, large", np.arange(5000, dtype=np.int16).reshape(50, 100)
    yield "complex128", np.array([1 + 2j, complex(np.nan, -np.inf)])
    yield "bool", np.array([[True, False], [False, True]])
    raw = np.zeros(41, dtype=np.uint8)
    yield "unaligned float64", raw[1:].view(np.float64)


class Old:
    """A framework from before DLPack 1.0: __dlpack__ has no keywords, the tensor is legacy."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self):
        return self.array.__dlpack__()


def numpy_tensors():
    cases = [(label, a, a) for label, a in arrays() if a.flags.writeable or NUMPY_KNOWS_FLAGS]
    cases += [(f"{label}, legacy", Old(a), a) for label, a in plain()[:1]]
    if NUMPY_KNOWS_FLAGS:
        return "NumPy", np.__version__, np.from_dlpack, cases
    # An array that NumPy imports is read-only, and NumPy does not export it again.
    return "NumPy", np.__version__, lambda tensor: np.from_dlpack(tensor).copy(), cases


def plain():
    """Arrays that every framework supports."""
    return [(label, a) for label, a in arrays()
            if label in ("float32 (4, 6)", "zero-dimensional", "int16, large", "size zero", "bool")]


def tvm_ffi_tensors():
    import tvm_ffi

    cases = plain() + [(label, a) for label, a in arrays() if label == "transposed"]
    return "tvm-ffi", tvm_ffi.__version__, tvm_ffi.from_dlpack, [
        (label, tvm_ffi.from_dlpack(a), a) for label, a in cases]


def torch_tensors():
    import torch

    cases = [(label, torch.from_numpy(a.copy()), a) for label, a in plain()]
    strided = torch.arange(12.0).reshape(3, 4)
    cases.append(("transposed", strided.T[1:], strided.numpy().T[1:]))
    return "PyTorch", torch.__version__, torch.from_dlpack, cases


def jax_tensors():
    import jax.numpy

    return "JAX", importlib.import_module("jax").__version__, jax.numpy.from_dlpack, [
        (label, jax.numpy.asarray(a), a) for label, a in plain()
        if a.dtype.itemsize < 8]  # JAX has no 64-bit types by default


def tensorflow_tensors():
    import tensorflow as tf

    def home(tensor):
        return tf.experimental.dlpack.from_dlpack(tensor.__dlpack__())

    return "TensorFlow", tf.__version__, home, [
        (label, tf.constant(a), a) for label, a in plain()]


SOURCES = {"numpy": numpy_tensors, "tvm_ffi": tvm_ffi_tensors, "torch": torch_tensors,
           "jax": jax_tensors, "tensorflow": tensorflow_tensors}

# --- The steps ---------------------------------------------------------------------------------


class Asked:
    """An object with a capsule created earlier."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule


def version_of(capsule):
    """The fields of a capsule: (protocol, address of its first element)."""
    address, versioned = capsules.peek(capsule)
    pointer = cast(address, dlpack.Versioned if versioned else dlpack.Legacy)
    tensor = pointer.contents.dl_tensor
    version = pointer.contents.version if versioned else None
    protocol = f"{version.major}.{version.minor}" if versioned else "legacy"
    return protocol, tensor.data and tensor.data + tensor.byte_offset


def letters(flags):
    return "".join(name for bit, name in ((1, "R"), (2, "C"), (4, "P")) if flags & bit) or "-"


def same(a, b):
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def prints(tensor, expected):
    """Whether what a tensor is printed as, read again, is what it should be, where all is shown."""
    text = str(tensor)
    words = {"nan": np.nan, "inf": np.inf, "nanj": complex(0, np.nan), "infj": complex(0, np.inf)}
    values = [] if "..." in text else eval(text, {"__builtins__": {}, **words})
    return "..." in text or same(np.array(values, expected.dtype).reshape(expected.shape), expected)


def exchange(source, expected, home, row):
    """Runs every step on one tensor, noting each result in `row`."""
    capsule = capsules.request(source)
    row["protocol"], exported = version_of(capsule)
    tensor = dlpack.from_dlpack(Asked(capsule))
    del capsule
    zero_copy = tensor.address == exported
    row["zero-copy"] = "(empty)" if expected.size == 0 else "yes" if zero_copy else "no"
    must(zero_copy or expected.size == 0, "a copy was made")
    row["flags"] = letters(tensor.flags)
    tensor.validate(dlpack.LEVEL_STRICT)

    must(prints(tensor, expected), f"printed {tensor}")
    row["printed"] = "= NumPy"

    ran = []
    for number in range(3):
        tensor.attach(lambda number=number: ran.append(number))

    there_and_back(tensor, expected)
    row["legacy"] = "ok" if not tensor.flags & dlpack.READ_ONLY else "refused R"

    second = tensor.share()
    must(tensor.ref_count == 2 and second.address == tensor.address, "no second reference")
    second.close()
    must(tensor.ref_count == 1 and not ran, "the second reference freed the tensor")
    row["shared"] = "ok"

    row["clone"] = cloned(tensor, expected)
    row["NumPy"] = back_to_numpy(tensor, expected)
    row["home"] = back_home(tensor, expected, home)

    must(not ran, "a deleter ran too early")
    tensor.close()
    gc.collect()
    capsules.sweep()
    row["deleters"] = f"{len(ran)} of 3"
    must(sorted(ran) == [0, 1, 2], f"deleters ran as {ran}")


def there_and_back(tensor, expected):
    address, flags = tensor.address, tensor.flags
    if flags & dlpack.READ_ONLY:
        try:
            tensor.to_legacy_and_back()
        except BufferError:
            pass  # not expressible in the legacy struct, and nothing was taken
        else:
            raise Wrong("read-only data left through the legacy struct")
    tensor.to_legacy_and_back(flags, dlpack.LEGACY_DROP)
    must(tensor.address == address and tensor.flags == flags, "the legacy struct lost something")
    must(prints(tensor, expected), "the legacy struct lost values")


def cloned(tensor, expected):
    ran = []
    clone = tensor.clone()
    clone.attach(lambda: ran.append(1))
    must(clone.flags == dlpack.IS_COPIED, f"a clone has flags {clone.flags}")
    must(clone.address is None or clone.address != tensor.address, "a clone shares memory")
    must(clone.is_contiguous("C"), "a clone has gaps")
    flags = letters(clone.flags)
    array = np.from_dlpack(clone)
    must(same(array, expected), "a clone has other values")
    del clone
    must(not ran, "NumPy's array lost its memory")
    del array
    capsules.sweep()
    must(len(ran) == 1, f"the clone's deleter ran {len(ran)} times")
    return flags


def back_to_numpy(tensor, expected):
    if tensor.flags & dlpack.READ_ONLY and not NUMPY_KNOWS_FLAGS:
        must(same(np.from_dlpack(tensor.clone()), expected), "NumPy got other values")
        return "a clone"
    array = np.from_dlpack(tensor)
    must(same(array, expected), "NumPy got other values")
    must(array.size == 0 or array.ctypes.data == tensor.address, "NumPy got other memory")
    writable = not tensor.flags & dlpack.READ_ONLY
    if NUMPY_KNOWS_FLAGS and array.size:  # an empty array is NumPy's: nothing to write
        must(array.flags.writeable == writable, "NumPy got another READ_ONLY")
    return "same" if array.flags.writeable else "same, R"


def back_home(tensor, expected, home):
    given, result = tensor, "same"
    try:
        theirs = home(tensor)
    except BufferError:
        # It requests a legacy tensor, which cannot be read-only. It has received nothing of ours.
        capsules.sweep()
        must(tensor.ref_count == 1, "a refused tensor was not given back")
        given, result = tensor.clone(), "a clone"
        theirs = home(given)
    ours = dlpack.from_dlpack(theirs)
    must(prints(ours, expected), "the framework got other values")
    return result if ours.address == given.address else "copied"


def main():
    warnings.filterwarnings("ignore")
    rows, wrong = [], []
    for module, make in SOURCES.items():
        try:
            importlib.import_module(module)
        except ImportError:
            rows.append({"framework": module, "tensor": "(not installed here)"})
            continue
        name, version, home, cases = make()
        for label, source, expected in cases:
            row = {"framework": f"{name} {version}", "tensor": label}
            rows.append(row)
            before = sys.getrefcount(expected)
            try:
                exchange(source, expected, home, row)
                gc.collect()
                must(sys.getrefcount(expected) == before, "a reference to the array was lost")
            except Exception as error:
                wrong.append(f"{row['framework']}, {label}: {type(error).__name__}: {error}")
                row["deleters"] = "WRONG"
    show(rows)
    if capsules.watched:
        wrong.append(f"{len(capsules.watched)} callbacks never ran")
    for line in wrong:
        print("WRONG:", line)
    exchanged = sum("protocol" in row for row in rows)
    version = dlpack.lib.dlrs_version_string().decode()
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
