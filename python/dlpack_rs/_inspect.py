"""All properties of an object's DLPack export."""

from __future__ import annotations

from ctypes import byref, c_char, c_int32, c_uint64, pointer

from . import abi
from .abi import capsule as capsules
from .consumers import CONSUMERS, Consumer, judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_COPY_AT_MOST = 1 << 20  # bytes: a larger tensor is not copied only to see whether it can be
_LEVELS = {"strictly": abi.DLRS_LEVEL_STRICT, "its layout": abi.DLRS_LEVEL_LAYOUT,
           "only that the struct can be walked": abi.DLRS_LEVEL_STRUCT}
_FLAGS = {"READ_ONLY": abi.READ_ONLY, "IS_COPIED": abi.IS_COPIED,
          "IS_SUBBYTE_TYPE_PADDED": abi.IS_SUBBYTE_TYPE_PADDED}


class Inspection:
    """The DLPack export of an object; str() of it is a table."""

    type: str
    exchange_api: str | None  # the version of the C exchange API of the type
    says_device: Any  # what __dlpack_device__ returns; None: there is none
    keywords: dict[str, str]  # of __dlpack__, and what it answers to each
    legacy_error: str | None
    capsule: str
    version: tuple[int, int] | None  # None: legacy
    flags: int
    deleter: bool
    manager_ctx: bool
    device: tuple[int, int]
    device_name: str
    dtype: tuple[int, int, int]
    dtype_name: str
    data: int | None
    byte_offset: int
    address: int | None
    valid: str | None  # how far; None: not at all
    invalid: str | None  # what is wrong beyond that
    shape: tuple[int, ...] | None  # None: the struct cannot be walked
    strides: tuple[int, ...] | None  # None: NULL
    nbytes: int | None
    dense: str | None  # "C", "F", "CF" or ""
    overlapping: bool | None
    consumers: list[tuple[Consumer, str, str]]  # (consumer, verdict, why)

    def __init__(self, obj: Any) -> None:
        kind = type(obj)
        self.type = f"{kind.__module__}.{kind.__qualname__}"
        self.exchange_api = _exchange_api(kind)
        self.says_device, self.keywords, self.legacy_error = None, {}, None
        if not hasattr(obj, "__dlpack__"):
            raise TypeError(f"{self.type} has no __dlpack__: it exports no DLPack tensor")
        self._ask(obj)
        capsule = capsules.request(obj)
        struct = capsules.managed(capsule)
        if struct is None:
            raise TypeError(f"{self.type}.__dlpack__ returned {capsule!r}, no DLPack capsule")
        self._read(struct)
        self._probe(obj)
        self.consumers = [(consumer, *judge(consumer, self)) for consumer in CONSUMERS]

    def _ask(self, obj: Any) -> None:
        """__dlpack_device__, and whether there is a legacy capsule."""
        if hasattr(obj, "__dlpack_device__"):
            said = obj.__dlpack_device__()
            self.says_device = tuple(said) if isinstance(said, (tuple, list)) else said
        try:
            found = capsules.peek(obj.__dlpack__())
            if found is None or found[1]:
                self.legacy_error = "here is a versioned one" if found else "nothing of use"
        except Exception as error:
            self.legacy_error = f"{type(error).__name__}: {error}"

    def _read(self, struct: abi.DLManagedTensorVersioned | abi.DLManagedTensor) -> None:
        tensor = struct.dl_tensor
        if isinstance(struct, abi.DLManagedTensorVersioned):
            self.capsule, self.flags = capsules.VERSIONED.decode(), struct.flags
            self.version = struct.version.major, struct.version.minor
        else:
            self.capsule, self.flags, self.version = capsules.LEGACY.decode(), 0, None
        self.deleter, self.manager_ctx = bool(struct.deleter), bool(struct.manager_ctx)
        self.device = (tensor.device.device_type, tensor.device.device_id)
        self.dtype = (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes)
        self.data, self.byte_offset = tensor.data, tensor.byte_offset
        self.address = self.data and self.data + self.byte_offset
        self.valid, self.invalid = self._validate(struct)
        self.device_name = _name(abi.lib.dlrs_device_format, tensor.device)
        self.dtype_name = _name(abi.lib.dlrs_dtype_format, tensor.dtype)
        self.shape = self.strides = self.nbytes = self.dense = self.overlapping = None
        if self.valid:
            self._read_layout(tensor)

    def _validate(
            self, struct: abi.DLManagedTensorVersioned | abi.DLManagedTensor,
    ) -> tuple[str | None, str | None]:
        """(the highest level at which the struct is valid, the error beyond that)"""
        validate: Callable[..., int]
        validate = abi.lib.dlrs_validate_managed if self.version else abi.lib.dlrs_validate_legacy
        wrong = None
        for words, level in _LEVELS.items():
            try:
                abi.call(validate, pointer(struct), level)
                return words, wrong
            except Exception as error:
                wrong = wrong or str(error)
        return None, wrong

    def _read_layout(self, tensor: abi.DLTensor) -> None:
        self.shape = tuple(tensor.shape[:tensor.ndim]) if tensor.ndim else ()
        self.strides = ()
        if tensor.ndim:
            self.strides = tuple(tensor.strides[:tensor.ndim]) if tensor.strides else None
        nbytes, answer = c_uint64(), c_int32()
        self.dense = ""
        try:
            abi.call(abi.lib.dlrs_nbytes, tensor, self.flags, byref(nbytes))
            self.nbytes = nbytes.value
            for order in "CF":
                abi.call(abi.lib.dlrs_is_contiguous, tensor, ord(order), byref(answer))
                self.dense += order * answer.value
            abi.call(abi.lib.dlrs_is_unique, tensor, self.flags, byref(answer))
            self.overlapping = answer.value == abi.DLRS_NO
        except Exception as error:
            self.overlapping, self.invalid = None, self.invalid or str(error)

    def _probe(self, obj: Any) -> None:
        """Which keywords __dlpack__ accepts: each with max_version, which a read-only tensor needs,
        if that is accepted, else alone. The capsule is released at once."""
        device = self.says_device if _is_pair(self.says_device) else None
        asked: dict[str, Any] = {"stream": None, "max_version": capsules.MAX_VERSION,
                                 "dl_device": device or self.device, "copy": False}
        if self.nbytes is not None and self.nbytes <= _COPY_AT_MOST:
            asked["copy=True"] = True
        known: dict[str, Any] = {"max_version": capsules.MAX_VERSION}
        if _answer(obj, "max_version", known) == "no":
            known = {}
        for name, value in asked.items():
            keyword = name.partition("=")[0]
            self.keywords[name] = _answer(obj, keyword, {**known, keyword: value})

    @property
    def read_only(self) -> bool:
        return bool(self.flags & abi.READ_ONLY)

    @property
    def alignment(self) -> int | None:
        """The largest power of two that divides the first element's address."""
        return self.address & -self.address if self.address else None

    def __repr__(self) -> str:
        return f"<Inspection of {self.type}: {self.dtype_name} {self.shape} on {self.device_name}>"

    def __str__(self) -> str:
        lines = [self.type, ""]
        lines += [f"{name:<15}{value}" for name, value in self.rows()]
        lines += ["", f"{'consumer':<24}{'verdict':<9}why"]
        for consumer, verdict, reason in self.consumers:
            name = f"{consumer.name} {consumer.version}"
            lines.append(f"{name:<24}{verdict:<9}{reason}".rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from ._picture import inspection_html

        return inspection_html(self)

    def rows(self) -> Iterator[tuple[str, str]]:
        """(name, text) of everything but the consumers."""
        version = "legacy, no version" if not self.version else "DLPack {}.{}".format(*self.version)
        yield "capsule", f"{self.capsule}, {version}"
        yield "legacy capsule", self.legacy_error or "yes, when asked for"
        yield "flags", ", ".join(n for n, bit in _FLAGS.items() if self.flags & bit) or "none"
        if self.flags & ~sum(_FLAGS.values()):
            yield "unknown flags", hex(self.flags & ~sum(_FLAGS.values()))
        says = self.says_device
        if says is None:
            says = "none"
        elif _is_pair(says):  # numbers, also of an enumeration
            says = tuple(map(int, says))
        yield "device", f"{self.device_name} {self.device}; __dlpack_device__ says {says}"
        yield "dtype", f"{self.dtype_name} {self.dtype}"
        if self.shape is not None:
            yield from self._layout_rows()
        yield "deleter", _present(self.deleter)
        yield "manager_ctx", _present(self.manager_ctx)
        yield "exchange API", self.exchange_api or "no"
        for name, answer in self.keywords.items():
            yield name if "=" in name else f"{name}=", answer
        yield "valid", self.valid or "no"
        if self.invalid:
            yield "", self.invalid

    def _layout_rows(self) -> Iterator[tuple[str, str]]:
        yield "shape", f"{self.shape}: {self.nbytes} bytes"
        orders = {"": "with gaps, or in another order", "C": "dense in C order",
                  "F": "dense in Fortran order", "CF": "dense in C and Fortran order"}
        shared = "; elements share memory" if self.overlapping else ""
        strides = "NULL" if self.strides is None else self.strides
        yield "strides", f"{strides}: {orders[self.dense or str()]}{shared}"
        where = f"aligned to {self.alignment}" if self.address else "NULL"
        yield "data", f"{where}, byte_offset {self.byte_offset}"


def _answer(obj: Any, keyword: str, keywords: dict[str, Any]) -> str:
    """The response of __dlpack__ to a keyword, given among others."""
    try:
        struct = capsules.managed(obj.__dlpack__(**keywords))
        return "yes" if struct is not None else "no capsule"
    except TypeError as error:
        return "no" if keyword in str(error) else f"TypeError: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _present(there: bool) -> str:
    return "yes" if there else "NULL"


def _is_pair(said: Any) -> bool:
    """Whether a device is two integers."""
    return isinstance(said, tuple) and len(said) == 2 and all(
        hasattr(part, "__index__") for part in said)


def _name(format: Callable[..., int], value: abi.DLDevice | abi.DLDataType) -> str:
    text = (c_char * 64)()
    try:
        abi.call(format, value, text, len(text), None)
    except Exception as error:
        return str(error)
    return text.value.decode()


def _exchange_api(kind: type) -> str | None:
    """The version of the C exchange API on a type, or None."""
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return None
    if not capsules.is_valid(capsule, b"dlpack_exchange_api"):
        return "not a capsule named dlpack_exchange_api"
    address = capsules.get_pointer(capsule, b"dlpack_exchange_api")
    version = abi.DLPackExchangeAPIHeader.from_address(address).version
    return f"DLPack {version.major}.{version.minor}"


def inspect(obj: Any) -> Inspection:
    """Everything about the tensor that an object exports through __dlpack__, as an Inspection."""
    return Inspection(obj)
