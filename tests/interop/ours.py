"""Our side of an exchange: tensors with a known address, known bytes and a counted deleter.

The tensors are dlpack_rs.Tensor; their memory is wrapped through the C ABI, so that the test's
callback counts the frees and any layout is possible.
"""

import gc
import sys
from ctypes import POINTER, addressof, byref, c_char, c_int64, c_void_p, cast, py_object, string_at
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import dlpack_rs  # noqa: E402
from dlpack_rs import abi  # noqa: E402
from dlpack_rs.abi import capsule as capsules  # noqa: E402

take = dlpack_rs.from_dlpack


class Capsule:
    """An object that exports only a capsule created earlier."""

    def __init__(self, capsule, device=(1, 0)):
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return self.device


class Facts:
    """The fields of a capsule's struct; the capsule is unchanged."""

    def __init__(self, capsule):
        address, versioned = capsules.peek(capsule)
        managed = cast(address, abi.Versioned if versioned else abi.Legacy).contents
        self.managed, tensor = managed, managed.dl_tensor
        self.protocol = "legacy"
        if versioned:
            self.protocol = f"{managed.version.major}.{managed.version.minor}"
        self.flags = managed.flags if versioned else 0
        self.data, self.byte_offset = tensor.data, tensor.byte_offset
        self.address = tensor.data and tensor.data + tensor.byte_offset
        self.shape = tuple(tensor.shape[:tensor.ndim]) if tensor.ndim else ()
        self.strides = tuple(tensor.strides[:tensor.ndim]) if tensor.strides else None
        if not tensor.ndim:
            self.strides = ()
        self.dtype = (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes)
        self.device = (tensor.device.device_type, tensor.device.device_id)


def facts(tensor):
    """For a tensor of ours, or for any other that exports a versioned capsule."""
    return Facts(tensor.__dlpack__(max_version=(1, 3)))


def parse(name):
    dtype, text = abi.DLDataType(), name.encode()
    abi.call(abi.lib.dlrs_dtype_parse, text, len(text), byref(dtype))
    return dtype


def dtype_of(name):
    parsed = parse(name)
    return parsed.code, parsed.bits, parsed.lanes


class Raw:
    """A tensor of the C ABI, exported with its struct as it is."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __del__(self, release=abi.lib.dlrs_release):  # at exit the module's globals may be gone
        release(self.tensor)

    def __dlpack__(self, **request):
        asked = abi.DLRS_INIT(abi.dlrs_py_request, **{name: id(value) for name, value in
                                                      request.items()})
        out = py_object()
        abi.call(abi.pylib.dlrs_py_export, self.tensor, byref(asked), byref(out))
        return abi.new_object(out)

    def __dlpack_device__(self):
        return 1, 0


class Owner:
    """What a tensor keeps: its memory, and a list that grows when it is released."""

    def __init__(self, memory, freed):
        self.memory, self.freed = memory, freed

    def __del__(self):
        self.freed.append(1)


class Made:
    """A tensor of ours over known memory, with the number of frees."""

    def __init__(self, data, shape, dtype, strides=None, read_only=False, byte_offset=0,
                 misaligned=0, first=0, raw=False):
        """`first` is the byte of element (0, ..., 0) within `data`; raw: never a Tensor."""
        shape = tuple(int(extent) for extent in shape)
        self.room = (c_char * (len(data) + byte_offset + 1024))()
        start = addressof(self.room)
        start += -start % 256 + misaligned
        self.memory = start + byte_offset
        (c_char * len(data)).from_address(self.memory)[:] = data
        self.address, self.nbytes = self.memory + first, len(data)
        self.freed = []
        tensor = abi.DLTensor(
            None if 0 in shape else start + first, abi.DLDevice(1, 0), len(shape),
            parse(dtype), (c_int64 * len(shape))(*shape),
            (c_int64 * len(shape))(*strides) if strides is not None else None, byte_offset)
        if 0 in shape:
            tensor.byte_offset = 0
        flags = abi.READ_ONLY if read_only else 0
        out = abi.Versioned()
        abi.call(abi.pylib.dlrs_py_wrap, tensor, flags, Owner(self.room, self.freed), byref(out))
        self.tensor = Raw(out) if raw else take(Raw(out))

    def write(self, data):
        (c_char * len(data)).from_address(self.memory)[:] = data

    def bytes(self):
        return string_at(self.memory, self.nbytes)

    def times_freed(self):
        gc.collect()
        return len(self.freed)


def of_array(array, dtype=None, **options):
    """A tensor of ours with the values of a NumPy array, dense in C order."""
    return Made(array.tobytes(), array.shape, dtype or str(array.dtype), **options)


DELETERS = {"legacy": abi.CFUNCTYPE(None, abi.Legacy),
            "versioned": abi.CFUNCTYPE(None, abi.Versioned)}


kept = []  # C may call them at the very end


class Counted:
    """A foreign capsule with a deleter that counts its calls."""

    def __init__(self, capsule):
        self.calls = 0
        managed = Facts(capsule).managed
        kind = DELETERS["legacy" if isinstance(managed, abi.DLManagedTensor) else "versioned"]
        theirs = kind(managed.deleter) if managed.deleter else None

        def deleter(pointer):
            self.calls += 1
            if theirs:
                theirs(pointer)

        self.ours = kind(deleter)
        kept.append(self.ours)
        managed.deleter = cast(self.ours, c_void_p)
        self.capsule = capsule


__all__ = ["Capsule", "Counted", "Facts", "Made", "POINTER", "capsules", "dtype_of", "facts",
           "of_array", "take"]
