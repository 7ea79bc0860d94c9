"""libdlpack_rs from Python, with ctypes.

    import dlpack_ctypes as dlpack
    tensor = dlpack.from_dlpack(array)      # any object with __dlpack__: NumPy, PyTorch, ...
    print(tensor)
    numpy.from_dlpack(tensor.clone())

The structs, the functions and the library itself come from dlpack_rs.abi. This file is an example
of how to call them; the manual of every function is include/dlpack_rs.h.
"""

from ctypes import (POINTER, addressof, byref, c_char, c_int32, c_int64, c_size_t, c_uint64,
                    c_void_p, cast, create_string_buffer, sizeof)

import capsules

from dlpack_rs.abi import (IS_COPIED, READ_ONLY, DLDataType, DLDevice, DLTensor, Legacy, Versioned,
                           call, dlrs_copy_options, dlrs_import_options, lib)
from dlpack_rs.abi import DLRS_AFTER_FREE as AFTER_FREE
from dlpack_rs.abi import DLRS_COPY_ALLOW_OVERLAP as COPY_ALLOW_OVERLAP
from dlpack_rs.abi import DLRS_LEGACY_DROP as LEGACY_DROP
from dlpack_rs.abi import DLRS_LEGACY_REFUSE as LEGACY_REFUSE
from dlpack_rs.abi import DLRS_LEVEL_STRICT as LEVEL_STRICT

CPU = DLDevice(1, 0)

# --- Tensors ----------------------------------------------------------------------------------

# When a tensor is freed, C calls the library's dlrs_release on a witness: an empty tensor whose
# reference count tells Python that it happened. See capsules.py for the reason.
RELEASE = cast(lib.dlrs_release, c_void_p)


class Callback:
    """Calls a Python function after C has released one reference to a witness."""

    def __init__(self, function):
        self.function = function
        self.witness = empty((0,))
        self.given, self.spare = self.witness.share(), self.witness.share()

    def give(self):
        """C owns it now."""
        self.given.pointer = None
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

    # Bound early: when the interpreter ends, this module may be gone before its tensors.
    def close(self, release=lib.dlrs_release, sweep=capsules.sweep):
        pointer, self.pointer = self.pointer, None
        if pointer:
            release(pointer)
            sweep()

    def __del__(self):
        self.close()

    @property
    def _managed(self):
        if not self.pointer:
            raise ValueError("the tensor is closed")
        return self.pointer.contents

    # Properties.

    @property
    def shape(self):
        tensor = self._managed.dl_tensor
        return tuple(tensor.shape[:tensor.ndim]) if tensor.ndim else ()

    @property
    def strides(self):
        """In elements, as DLPack counts."""
        tensor = self._managed.dl_tensor
        return tuple(tensor.strides[:tensor.ndim]) if tensor.ndim else ()

    @property
    def dtype(self):
        text = create_string_buffer(64)
        call(lib.dlrs_dtype_format, self._managed.dl_tensor.dtype, text, len(text), None)
        return text.value.decode()

    @property
    def device(self):
        text = create_string_buffer(64)
        call(lib.dlrs_device_format, self._managed.dl_tensor.device, text, len(text), None)
        return text.value.decode()

    @property
    def address(self):
        """Of the first element; None when there is none."""
        tensor = self._managed.dl_tensor
        return tensor.data and tensor.data + tensor.byte_offset

    @property
    def flags(self):
        return self._managed.flags

    @property
    def ref_count(self):
        return lib.dlrs_ref_count(self.pointer)

    def is_contiguous(self, order="C"):
        answer = c_int32()
        call(lib.dlrs_is_contiguous, self._managed.dl_tensor, ord(order), byref(answer))
        return bool(answer)

    def validate(self, level=LEVEL_STRICT):
        call(lib.dlrs_validate_managed, self.pointer, level)

    def describe(self):
        """One line about the tensor, then its values."""
        nbytes = c_size_t()
        call(lib.dlrs_managed_to_string, self.pointer, None, None, 0, byref(nbytes))
        text = create_string_buffer(nbytes.value + 1)
        call(lib.dlrs_managed_to_string, self.pointer, None, text, len(text), None)
        return text.value.decode()

    def __str__(self):
        return self.describe().partition("\n")[2]

    def __repr__(self):
        return self.describe().partition("\n")[0] if self.pointer else "Tensor(closed)"

    # Operations.

    def _made(self, function, *arguments):
        out = Versioned()
        call(function, *arguments, byref(out))
        return type(self)(out)

    def share(self):
        """One more reference to the same tensor."""
        return self._made(lib.dlrs_retain, self.pointer)

    def clone(self):
        """A copy, flagged IS_COPIED."""
        return self._made(lib.dlrs_clone, self.pointer, CPU, None)

    def contiguous(self, order="C"):
        """This tensor when it is dense in that order, else a dense copy."""
        return self._made(lib.dlrs_contiguous, self.pointer, ord(order), None)

    def to_legacy_and_back(self, flags=0, policy=LEGACY_REFUSE):
        """Converts the struct in place to a legacy one and back to a versioned one."""
        legacy, out = Legacy(), Versioned()
        call(lib.dlrs_to_legacy_take, byref(self.pointer), policy, byref(legacy))
        try:
            call(lib.dlrs_from_legacy_take, byref(legacy), flags, byref(out))
        except Exception:
            lib.dlrs_release_legacy(legacy)
            raise
        self.pointer = out

    def set_flags(self, set=0, clear=0):
        call(lib.dlrs_set_flags, self.pointer, set, clear)

    def attach(self, function):
        """Calls function() once, soon after the last reference is released; see capsules.sweep."""
        callback = Callback(function)
        call(lib.dlrs_attach, self.pointer, RELEASE, callback.given.pointer, AFTER_FREE)
        callback.give()
        return callback

    def detach(self, callback):
        call(lib.dlrs_detach, self.pointer, RELEASE, callback.witness.pointer)
        capsules.unwatch(callback)
        lib.dlrs_release(callback.witness.pointer)  # the reference that C owned

    # The protocol.

    def __dlpack_device__(self):
        device = self._managed.dl_tensor.device
        return device.device_type, device.device_id

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if stream is not None:
            raise ValueError("stream must be None for memory of the CPU")
        device = DLDevice(*(dl_device or self.__dlpack_device__()))
        policy = {None: 0, False: -1, True: 1}[copy]
        shared = self._made(lib.dlrs_to_device, self.pointer, device, policy, None)
        if max_version is not None and max_version[0] >= 1:
            address = cast(shared.pointer, c_void_p).value
            capsule = capsules.hand_out(address, True, _release)
            shared.pointer = None  # owned by the capsule now
            return capsule
        legacy = Legacy()
        try:
            call(lib.dlrs_to_legacy_take, byref(shared.pointer), LEGACY_REFUSE, byref(legacy))
        except BufferError:
            shared.close()  # now: the exception's traceback would reference it
            raise
        return capsules.hand_out(cast(legacy, c_void_p).value, False, _release_legacy)


def _release(address):
    lib.dlrs_release(cast(address, Versioned))


def _release_legacy(address):
    lib.dlrs_release_legacy(cast(address, Legacy))


def from_dlpack(obj, *, copy=None, order=None, align_bytes=0, writable=False,
                legacy_flags=READ_ONLY):
    """Imports the tensor of any object with __dlpack__; without a copy where possible.

    A legacy tensor has no read-only flag: like NumPy, this assumes read-only.
    """
    options = dlrs_import_options(
        struct_size=sizeof(dlrs_import_options), copy={None: 0, False: -1, True: 1}[copy],
        order=ord(order) if order else 0, align_bytes=align_bytes, writable=writable)
    out = Versioned()
    with capsules.taking(capsules.request(obj)) as (slot, versioned):
        if versioned:
            taken = capsules.slot_as(slot, Versioned)
            call(lib.dlrs_import_take, taken, byref(options), byref(out))
            return Tensor(out)
        taken = capsules.slot_as(slot, Legacy)
        call(lib.dlrs_from_legacy_take, taken, legacy_flags, byref(out))
    ours, out = Tensor(out), Versioned()
    call(lib.dlrs_import_take, byref(ours.pointer), byref(options), byref(out))
    return Tensor(out)


def parse_dtype(name):
    dtype, text = DLDataType(), name.encode()
    call(lib.dlrs_dtype_parse, text, len(text), byref(dtype))
    return dtype


def empty(shape, dtype="float32"):
    """A new tensor, not initialised."""
    extents, out = (c_int64 * len(shape))(*shape), Versioned()
    call(lib.dlrs_tensor_new, extents, len(shape), parse_dtype(dtype), CPU, None, byref(out))
    return Tensor(out)


def wrap(buffer, shape, dtype="uint8", flags=0):
    """A tensor over writable memory of a Python object, which the tensor keeps alive."""
    memory = (c_char * memoryview(buffer).nbytes).from_buffer(buffer)
    extents, out = (c_int64 * len(shape))(*shape), Versioned()
    tensor = DLTensor(addressof(memory), CPU, len(shape), parse_dtype(dtype), extents)
    nbytes = c_uint64()
    call(lib.dlrs_nbytes, byref(tensor), flags, byref(nbytes))
    if nbytes.value > sizeof(memory):
        raise ValueError(f"{nbytes.value} bytes are needed, the buffer has {sizeof(memory)}")
    callback = Callback(lambda: memory and None)  # references `memory` until then
    call(lib.dlrs_tensor_wrap, byref(tensor), flags, RELEASE, callback.given.pointer, byref(out))
    callback.give()
    return Tensor(out)


def copy(src, dst, allow_overlap=False):
    """Copies elements: shapes and dtypes must be equal, strides need not."""
    options = dlrs_copy_options(struct_size=sizeof(dlrs_copy_options),
                                flags=COPY_ALLOW_OVERLAP if allow_overlap else 0)
    call(lib.dlrs_copy, src.pointer, dst.pointer, byref(options))
