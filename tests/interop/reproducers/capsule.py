"""The DLPack struct in a capsule, read and edited in place."""
import ctypes

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Managed:
    """Offsets of DLManagedTensorVersioned and DLManagedTensor where pointers have 8 bytes."""

    def __init__(self, capsule):
        self.versioned = b"versioned" in repr(capsule).encode()
        self.at = pointer(capsule, b"dltensor_versioned" if self.versioned else b"dltensor")
        self.tensor = self.at + (32 if self.versioned else 0)
        self.major = ctypes.c_uint32.from_address(self.at)  # where it is versioned
        self.flags = ctypes.c_uint64.from_address(self.at + 24)
        self.deleter = ctypes.c_void_p.from_address(self.at + (16 if self.versioned else 56))
        self.device_type = ctypes.c_int32.from_address(self.tensor + 8)
        self.ndim = ctypes.c_int32.from_address(self.tensor + 16)
        self.code = ctypes.c_uint8.from_address(self.tensor + 20)
        self.lanes = ctypes.c_uint16.from_address(self.tensor + 22)
        self.shape_pointer = ctypes.c_void_p.from_address(self.tensor + 24)
        strides = ctypes.c_void_p.from_address(self.tensor + 32).value
        self.byte_offset = ctypes.c_uint64.from_address(self.tensor + 40)
        numbers = ctypes.c_int64 * self.ndim.value
        self.shape = numbers.from_address(self.shape_pointer.value)
        self.strides = numbers.from_address(strides) if strides else None


class Forged:
    """A NumPy array whose exports are edited by a function before a consumer gets them."""

    def __init__(self, array, edit):
        self.array, self.edit = array, edit

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **keywords):
        keywords = {name: value for name, value in keywords.items() if name == "max_version"}
        capsule = self.array.__dlpack__(**keywords)
        self.edit(Managed(capsule))
        return capsule


def say(violated, what):
    print(f"violated: {what}" if violated else "kept", flush=True)
