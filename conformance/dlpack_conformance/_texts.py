"""The sentences that checks rest on: document, the version that has it first, and its words.

The array API standard by its year, dlpack.h and DLPack's Python specification by DLPack's version.
"""

from __future__ import annotations

_API = "https://data-apis.org/array-api/{}/API_specification/generated/array_api."
DOCUMENTS = {
    "__dlpack__": ("array API standard, __dlpack__", _API + "array.__dlpack__.html"),
    "__dlpack_device__": ("array API standard, __dlpack_device__",
                          _API + "array.__dlpack_device__.html"),
    "from_dlpack": ("array API standard, from_dlpack", _API + "from_dlpack.html"),
    "python": ("DLPack, Python Specification",
               "https://dmlc.github.io/dlpack/latest/python_spec.html"),
    "dlpack.h": ("dlpack.h", "https://github.com/dmlc/dlpack/blob/v{}/include/dlpack/dlpack.h"),
}
# The years of the standard, and the newest DLPack that was there.
STANDARDS = {"2021.12": (0, 5), "2022.12": (0, 7), "2023.12": (1, 0), "2024.12": (1, 1),
             "2025.12": (1, 3)}

TEXTS = {
    # ---- __dlpack__
    "exports": ("__dlpack__", "2021.12", "Exports the array for consumption by from_dlpack() as a "
                "DLPack capsule."),
    "stream-none": ("__dlpack__", "2021.12", "On CPU and other device types without streams, only "
                    "None is accepted."),
    "stream-type": ("__dlpack__", "2021.12", "for CUDA and ROCm, a Python integer representing a "
                    "pointer to a stream"),
    "stream-values": ("__dlpack__", "2021.12", "1: the legacy default stream. 2: the per-thread "
                      "default stream."),
    "stream-0": ("__dlpack__", "2021.12", "0 is disallowed due to its ambiguity"),
    "stream-range": ("__dlpack__", "2023.12", "The pointer must be an integer larger than or equal "
                     "to -1"),
    "max_version": ("__dlpack__", "2023.12", "the maximum DLPack version that the consumer (i.e., "
                    "the caller of __dlpack__) supports, in the form of a 2-tuple (major, minor)"),
    "other-version": ("__dlpack__", "2023.12", "This method may return a capsule of version "
                      "max_version (recommended if it does support that), or of a different "
                      "version."),
    "no-version": ("__dlpack__", "2023.12", "if max_version is None: Keep and use the DLPack 0.X "
                   "implementation. Note: from March 2025 onwards (but ideally as late as "
                   "possible), it's okay to raise BufferError here"),
    "older-major": ("__dlpack__", "2023.12", "the producer should raise a BufferError here to tell "
                    "users that the consumer's max_version is too old to allow the data exchange "
                    "to happen"),
    "newer": ("__dlpack__", "2023.12", "if max_version >= our_own_dlpack_version: Consumer "
              "understands us, just return a Capsule with our max version"),
    "dl_device": ("__dlpack__", "2023.12", "When specified, the format must be a 2-tuple, "
                  "following that of the return value of array.__dlpack_device__()."),
    "dl_device-refused": ("__dlpack__", "2023.12", "If the device type cannot be handled by the "
                          "producer, this function must raise BufferError."),
    "to-host": ("__dlpack__", "2023.12", "a compliant library should offer a way for __dlpack__ to "
                "return a capsule referencing an array whose underlying memory is accessible to "
                "the Python interpreter"),
    "copy": ("__dlpack__", "2023.12", "boolean indicating whether or not to copy the input"),
    "copy-true": ("__dlpack__", "2023.12", "If True, the function must always copy"),
    "copy-false": ("__dlpack__", "2023.12", "If False, the function must never copy, and raise a "
                   "BufferError in case a copy is deemed necessary"),
    "copy-none": ("__dlpack__", "2023.12", "If None, the function must reuse the existing memory "
                  "buffer if possible and copy otherwise."),
    "copied-flag": ("__dlpack__", "2023.12", "When a copy happens, the "
                    "DLPACK_FLAG_BITMASK_IS_COPIED flag must be set."),
    "cannot": ("__dlpack__", "2022.12", "Implementations should raise BufferError when the data "
               "cannot be exported as DLPack (e.g., incompatible dtype or strides)."),
    "retry": ("__dlpack__", "2023.12", "try: x.__dlpack__(max_version=(1, 0), ...) except "
              "TypeError: x.__dlpack__(...). This logic is also applicable to handling of the new "
              "dl_device and copy keywords."),
    "verify": ("__dlpack__", "2023.12", "the consumer must verify the version even when "
               "max_version is passed"),
    "device": ("__dlpack_device__", "2021.12", "a tuple (device_type, device_id) in DLPack format"),
    # ---- from_dlpack
    "from": ("from_dlpack", "2021.12", "Returns a new array containing the data from another "
             "(array) object with a __dlpack__ method."),
    "from-copy": ("from_dlpack", "2023.12", "If True, the function must always copy."),
    "from-copy-false": ("from_dlpack", "2023.12", "If False, the function must never copy, and "
                        "raise BufferError in case a copy is deemed necessary"),
    "propagate": ("from_dlpack", "2023.12", "from_dlpack must propagate such exceptions."),
    "no-methods": ("from_dlpack", "2023.12", "AttributeError: If the __dlpack__ and "
                   "__dlpack_device__ methods are not present on the input array."),
    # ---- DLPack's Python specification
    "zero-copy": ("python", "0.5", "If possible, this must be zero-copy (i.e. y will be a view on "
                  "x)."),
    "both-used": ("python", "0.5", "Both x and y may continue to be used just like arrays created "
                  "in other ways."),
    "owner": ("python", "0.5", "The producer keeps owning the memory of x"),
    "device-refused": ("python", "1.0", "If an array that is accessed via the interchange protocol "
                       "lives on a device that the requesting (consumer) library does not support, "
                       "it is recommended to raise a BufferError"),
    "transition": ("python", "1.0", "a library should try to support both during the transition "
                   "period if possible"),
    "name": ("python", "0.5", "The producer must set the PyCapsule name to \"dltensor\" so that it "
             "can be inspected by name"),
    "versioned-name": ("python", "1.0", "when DLManagedTensorVersioned is in use the capsule names "
                       "dltensor and used_dltensor will need a _versioned suffix"),
    "destructor": ("python", "0.7", "set PyCapsule_Destructor that calls the deleter of the "
                   "DLManagedTensor when the \"dltensor\"-named capsule is no longer needed"),
    "destructor-used": ("python", "0.7", "PyCapsule_Destructor calls deleter only for capsules "
                        "whose name is \"dltensor\""),
    "rename": ("python", "0.5", "It does so by renaming the capsule to \"used_dltensor\" to ensure "
               "that PyCapsule_Destructor will not get called"),
    "once": ("python", "0.5", "it is consumed exactly once"),
    "owner-object": ("python", "0.7", "the deleter of the DLManagedTensor will be called by the "
                     "destructor of the consumer library object created to own the "
                     "DLManagedTensor"),
    "static": ("python", "0.7", "the capsule names \"dltensor\" and \"used_dltensor\" must be "
               "statically allocated"),
    "gil": ("python", "0.7", "The DLManagedTensor deleter must ensure that sharing beyond Python "
            "boundaries is possible, this means that the GIL must be acquired explicitly if it "
            "uses Python objects or API."),
    "no-strides": ("python", "0.5", "When the strides field in the DLTensor struct is NULL, it "
                   "indicates a row-major compact array."),
    "empty": ("python", "0.5", "If the array is of size zero, the data pointer in DLTensor should "
              "be set to either NULL or 0."),
    # ---- dlpack.h
    "major": ("dlpack.h", "1.0", "If an obtained DLPack tensor has a major version that disagrees "
              "[...], the consumer must call the deleter (and it is safe to do so). It is not safe "
              "to access any other fields as the memory layout will have changed."),
    "minor": ("dlpack.h", "1.0", "In the case of a minor version mismatch, the tensor can be "
              "safely used as long as the consumer knows how to interpret all fields."),
    "version": ("dlpack.h", "1.0", "The API and ABI version of the current managed Tensor"),
    "device-id": ("dlpack.h", "0.6", "For vanilla CPU memory, pinned memory, or managed memory, "
                  "this is set to 0."),
    "device-type": ("dlpack.h", "0.2", "The device of the tensor"),
    "dtype": ("dlpack.h", "0.2", "The data type the tensor can hold. [...] float: type_code = 2, "
              "bits = 32, lanes = 1; int8: type_code = 0, bits = 8, lanes = 1"),
    "bool": ("dlpack.h", "0.8", "bool: type_code = 6, bits = 8, lanes = 1"),
    "lanes": ("dlpack.h", "0.2", "float4(vectorized 4 float): type_code = 2, bits = 32, lanes = 4"),
    "code": ("dlpack.h", "0.2", "the value should be one of DLDataTypeCode enum values"),
    "aligned": ("dlpack.h", "0.2", "This pointer is always aligned to 256 bytes as in CUDA."),
    "unaligned": ("dlpack.h", "0.6", "at the moment it is recommended to not rely on the data "
                  "pointer being correctly aligned"),
    "ndim": ("dlpack.h", "0.2", "Number of dimensions"),
    "shape": ("dlpack.h", "0.2", "The shape of the tensor"),
    "strides": ("dlpack.h", "0.3", "strides of the tensor (in number of elements, not bytes)"),
    "strides-set": ("dlpack.h", "1.2", "can not be NULL if ndim != 0, must points to an array of "
                    "ndim elements that specifies the strides"),
    "byte_offset": ("dlpack.h", "0.2", "The offset in bytes to the beginning pointer to data"),
    "borrow": ("dlpack.h", "0.2", "This data structure is intended to facilitate the borrowing of "
               "DLTensor by another framework. It is not meant to transfer the tensor. When the "
               "borrowing framework doesn't need the tensor, it should call the deleter"),
    "context-null": ("dlpack.h", "0.2", "the context of the original host framework [...]. It can "
                     "also be NULL."),
    "deleter-null": ("dlpack.h", "0.2", "It can be NULL if there is no way for the caller to "
                     "provide a reasonable destructor."),
    "deleter": ("dlpack.h", "0.3", "this should be called to destruct the manager_ctx which backs "
                "the DLManagedTensor. [...] The destructor deletes the argument self as well."),
    "read-only": ("dlpack.h", "1.0", "bit mask to indicate that the tensor is read only."),
    "is-copied": ("dlpack.h", "1.0", "If set, the tensor is considered solely owned throughout its "
                  "lifetime by the consumer, until the producer-provided deleter is invoked."),
    "packed": ("dlpack.h", "1.1", "The default for sub-byte types (ex: fp4/fp6) is assumed "
               "packed."),
    "padded": ("dlpack.h", "1.1", "This flag can be set by the producer to signal that a tensor of "
               "sub-byte type is padded."),
    "flags": ("dlpack.h", "1.0", "By default the flags should be set to 0."),
    "x-type": ("dlpack.h", "1.3", "This attribute must be set on the type as a Python PyCapsule "
               "with name \"dlpack_exchange_api\"."),
    "x-set": ("dlpack.h", "1.3", "This function must be not NULL."),
    "x-export": ("dlpack.h", "1.3", "Exports a PyObject* Tensor/NDArray to a "
                 "DLManagedTensorVersioned."),
    "x-import": ("dlpack.h", "1.3", "The DLManagedTensorVersioned to convert the ownership of the "
                 "tensor is stolen."),
    "x-borrow": ("dlpack.h", "1.3", "Exports a PyObject* Tensor/NDArray to a provided DLTensor."),
    "x-stream": ("dlpack.h", "1.3", "Obtain the current work stream of a device. [...] 0 on "
                 "success, -1 on failure with a Python exception set."),
    "x-error": ("dlpack.h", "1.3", "The owning DLManagedTensorVersioned* or NULL on failure with a "
                "Python exception set."),
    "x-allocate": ("dlpack.h", "1.3", "Only the dtype, ndim, shape, and device fields are used."),
}
PRACTICE = "practice"


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def asked(text: str, standard: str) -> bool:
    """Whether a year of the standard, and the DLPack of its time, have the sentence."""
    if text == PRACTICE:
        return True
    document, since, _ = TEXTS[text]
    if document in ("python", "dlpack.h"):
        return number(since) <= STANDARDS[standard]
    return number(since) <= number(standard)


def quoted(text: str) -> tuple[str, str, str]:
    """`(document and version, address, sentence)`."""
    if text == PRACTICE:
        return "practice: no text says so, programs in use rely on it", "", ""
    document, since, sentence = TEXTS[text]
    title, url = DOCUMENTS[document]
    if document == "dlpack.h":  # tags of versions before 0.5 have other files
        return f"{title} {since}", url.format(max("0.6", since)), sentence
    return f"{title} {since}", url.format(since), sentence
