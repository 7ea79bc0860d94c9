"""libdlpack_rs from Python with cffi: the headers themselves are the declarations.

    import dlpack_cffi as dlpack
    tensor = dlpack.from_dlpack(array)      # any object with __dlpack__: NumPy, PyTorch, ...
    numpy.from_dlpack(tensor.clone())

ABI mode: no compiler is needed. dlpack_rs.abi.cffi has the headers as cffi has read them.
dlpack_ctypes.py does the same and more with ctypes; its comments are not repeated here.
"""

import sys

import capsules

from dlpack_rs import abi
from dlpack_rs.abi.cffi import ffi, lib

READ_ONLY, IS_COPIED = lib.DLPACK_FLAG_BITMASK_READ_ONLY, lib.DLPACK_FLAG_BITMASK_IS_COPIED


def struct(name, **members):
    """A struct that starts with its size."""
    return ffi.new(f"{name} *", {"struct_size": ffi.sizeof(name), **members})


def call(function, *arguments):
    error = struct("dlrs_error")
    status = function(*arguments, error)
    if status != lib.DLRS_OK:
        message = ffi.string(error.message).decode()
        exception = abi.exception_of(status)(message)
        exception.status = status
        exception.name = ffi.string(lib.dlrs_status_name(status)).decode()
        raise exception


def check_layout():
    """Compares cffi's view of the headers with the library's compiled layout."""
    structs = {"version": "DLPackVersion", "device": "DLDevice", "dtype": "DLDataType",
               "tensor": "DLTensor", "legacy": "DLManagedTensor",
               "versioned": "DLManagedTensorVersioned",
               "exchange_header": "DLPackExchangeAPIHeader", "exchange_api": "DLPackExchangeAPI"}
    expected = struct("dlrs_abi_table", pointer_size=ffi.sizeof("void *"),
                      big_endian=sys.byteorder == "big",
                      dlpack_major=lib.DLPACK_MAJOR_VERSION,
                      dlpack_minor=lib.DLPACK_MINOR_VERSION,
                      tensor_align=ffi.alignof("DLTensor"))
    for prefix, name in structs.items():
        setattr(expected, f"{prefix}_size", ffi.sizeof(name))
        if prefix in ("tensor", "legacy", "versioned"):
            for member, field in ffi.typeof(name).fields:
                setattr(expected, f"{prefix}_{member}", field.offset)
    header = (lib.DLRS_VERSION_MAJOR * 1_000_000 + lib.DLRS_VERSION_MINOR * 1_000
              + lib.DLRS_VERSION_PATCH)
    call(lib.dlrs_abi_check, header, expected)


check_layout()

capsules.immortal(lib)  # tensors may outlive this module
RELEASE = ffi.cast("dlrs_free_fn", lib.dlrs_release)

# Looked up once, before they are needed: cffi takes a lock to look up a function or a type, and a
# tensor may be freed anywhere, also inside cffi.
ref_count, release, release_legacy = lib.dlrs_ref_count, lib.dlrs_release, lib.dlrs_release_legacy
VERSIONED = ffi.typeof("DLManagedTensorVersioned *")
LEGACY = ffi.typeof("DLManagedTensor *")


class Callback:
    """Calls a Python function after C has released one reference to a witness."""

    def __init__(self, function):
        self.function = function
        self.witness = empty((0,))
        self.given, self.spare = self.witness.share(), self.witness.share()

    def give(self):
        self.given.pointer = ffi.NULL
        capsules.watch(self)

    def due(self):
        return self.witness.ref_count < 3

    def act(self):
        if self.witness.ref_count != 2:
            raise RuntimeError("a deleter was called twice")
        self.function()


class Tensor:
    """One reference to a managed tensor of the library; released with the object."""

    def __init__(self, pointer):
        self.pointer = pointer

    def close(self, release=release, null=ffi.NULL, sweep=capsules.sweep):
        pointer, self.pointer = self.pointer, null
        if pointer:
            release(pointer)
            sweep()

    def __del__(self):
        self.close()

    @property
    def _tensor(self):
        if not self.pointer:
            raise ValueError("the tensor is closed")
        return self.pointer.dl_tensor

    @property
    def shape(self):
        return tuple(ffi.unpack(self._tensor.shape, self._tensor.ndim)) if self._tensor.ndim else ()

    @property
    def strides(self):
        tensor = self._tensor
        return tuple(ffi.unpack(tensor.strides, tensor.ndim)) if tensor.ndim else ()

    @property
    def dtype(self):
        text = ffi.new("char[64]")
        call(lib.dlrs_dtype_format, self._tensor.dtype, text, len(text), ffi.NULL)
        return ffi.string(text).decode()

    @property
    def address(self):
        data = int(ffi.cast("uintptr_t", self._tensor.data))
        return data + self._tensor.byte_offset if data else None

    @property
    def flags(self):
        return self.pointer.flags

    @property
    def ref_count(self):
        return ref_count(self.pointer)

    def is_contiguous(self, order="C"):
        answer = ffi.new("int32_t *")
        call(lib.dlrs_is_contiguous, ffi.addressof(self._tensor), ord(order), answer)
        return bool(answer[0])

    def validate(self, level=3):
        call(lib.dlrs_validate_managed, self.pointer, level)

    def describe(self):
        nbytes = ffi.new("size_t *")
        call(lib.dlrs_managed_to_string, self.pointer, ffi.NULL, ffi.NULL, 0, nbytes)
        text = ffi.new("char[]", nbytes[0] + 1)
        call(lib.dlrs_managed_to_string, self.pointer, ffi.NULL, text, len(text), ffi.NULL)
        return ffi.string(text).decode()

    def __str__(self):
        return self.describe().partition("\n")[2]

    def _made(self, function, *arguments):
        out = ffi.new("DLManagedTensorVersioned **")
        call(function, *arguments, out)
        return Tensor(out[0])

    def share(self):
        return self._made(lib.dlrs_retain, self.pointer)

    def clone(self):
        return self._made(lib.dlrs_clone, self.pointer, (lib.kDLCPU, 0), ffi.NULL)

    def contiguous(self, order="C"):
        return self._made(lib.dlrs_contiguous, self.pointer, ord(order), ffi.NULL)

    def attach(self, function):
        callback = Callback(function)
        call(lib.dlrs_attach, self.pointer, RELEASE, callback.given.pointer, lib.DLRS_AFTER_FREE)
        callback.give()
        return callback

    def detach(self, callback):
        call(lib.dlrs_detach, self.pointer, RELEASE, callback.witness.pointer)
        capsules.unwatch(callback)
        lib.dlrs_release(callback.witness.pointer)

    def __dlpack_device__(self):
        return self._tensor.device.device_type, self._tensor.device.device_id

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if stream is not None:
            raise ValueError("stream must be None for memory of the CPU")
        device = dl_device or self.__dlpack_device__()
        policy = {None: 0, False: -1, True: 1}[copy]
        shared = self._made(lib.dlrs_to_device, self.pointer, device, policy, ffi.NULL)
        if max_version is not None and max_version[0] >= 1:
            pointer, shared.pointer = shared.pointer, ffi.NULL
            return capsules.hand_out(int(ffi.cast("uintptr_t", pointer)), True, _release)
        slot = ffi.new("DLManagedTensorVersioned **", shared.pointer)
        legacy = ffi.new("DLManagedTensor **")
        try:
            call(lib.dlrs_to_legacy_take, slot, lib.DLRS_LEGACY_REFUSE, legacy)
        except BufferError:
            shared.close()
            raise
        shared.pointer = ffi.NULL
        return capsules.hand_out(int(ffi.cast("uintptr_t", legacy[0])), False, _release_legacy)


def _release(address):
    release(ffi.cast(VERSIONED, address))


def _release_legacy(address):
    release_legacy(ffi.cast(LEGACY, address))


def from_dlpack(obj, *, copy=None, order=None, align_bytes=0, writable=False,
                legacy_flags=READ_ONLY):
    """Imports the tensor of any object with __dlpack__; without a copy where possible."""
    options = struct("dlrs_import_options", copy={None: 0, False: -1, True: 1}[copy],
                     order=ord(order) if order else 0, align_bytes=align_bytes, writable=writable)
    out = ffi.new("DLManagedTensorVersioned **")
    with capsules.taking(capsules.request(obj)) as (slot, versioned):
        address = capsules.address_of(slot)
        if versioned:
            taken = ffi.cast("DLManagedTensorVersioned **", address)
            call(lib.dlrs_import_take, taken, options, out)
            return Tensor(out[0])
        call(lib.dlrs_from_legacy_take, ffi.cast("DLManagedTensor **", address), legacy_flags, out)
    slot = ffi.new("DLManagedTensorVersioned **", out[0])
    try:
        call(lib.dlrs_import_take, slot, options, out)
    except BaseException:
        lib.dlrs_release(slot[0])
        raise
    return Tensor(out[0])


def empty(shape, dtype="float32"):
    """A new tensor, not initialised."""
    out, parsed = ffi.new("DLManagedTensorVersioned **"), ffi.new("DLDataType *")
    text = dtype.encode()
    call(lib.dlrs_dtype_parse, text, len(text), parsed)
    device = ffi.new("DLDevice *", (lib.kDLCPU, 0))
    call(lib.dlrs_tensor_new, list(shape), len(shape), parsed[0], device[0], ffi.NULL, out)
    return Tensor(out[0])


def copy(src, dst, allow_overlap=False):
    """Copies elements: shapes and dtypes must be equal, strides need not."""
    options = struct("dlrs_copy_options", flags=lib.DLRS_COPY_ALLOW_OVERLAP if allow_overlap else 0)
    call(lib.dlrs_copy, src.pointer, dst.pointer, options)
