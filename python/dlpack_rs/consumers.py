"""Which tensors each framework accepts: measured at the version given, see docs/interop.md.

A consumer's from_dlpack, given a tensor,

    accepts it    without a copy
    copies it     without a request
    rejects it    with an exception
    breaks on it  silently wrong values, a failure later, or the end of the process

`judge` returns which, and why. tests/interop compares every result with the framework's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ._inspect import Inspection

TAKES, COPIES, REFUSES, BREAKS = "takes", "copies", "refuses", "breaks"

_INTS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64"
_FLOATS = "float16 float32 float64"
_NUMPY = f"{_INTS} {_FLOATS} complex64 complex128"
_FP8 = ("float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 "
        "float8_e5m2fnuz float8_e8m0fnu")
_EVERY = (f"{_NUMPY} bfloat16 {_FP8} float6_e2m3fn float6_e3m2fn float4_e2m1fn float4_e2m1fnx2 "
          "int4 uint4")


def _without(names: str, *left_out: str) -> str:
    return " ".join(name for name in names.split() if name not in left_out)


@dataclass(frozen=True)
class Consumer:
    """One framework. What a rule does to a tensor that breaks it: COPIES, REFUSES or BREAKS."""

    name: str
    version: str
    dtypes: str  # names, with spaces
    capsule: str = "versioned"  # or "legacy": what it asks for
    exchange_api: bool = False  # asks the C exchange API of the type first
    devices: tuple[int, ...] = (1,)  # DLDeviceType codes
    strides: str = "any"  # "gaps": not negative; "permuted": a dense block; "C": dense, row-major
    reversed: str = REFUSES  # what negative strides meet, where `strides` is "gaps"
    byte_offset: str = TAKES  # what an offset meets
    align: int = 1
    unaligned: str = REFUSES  # what an address that is no multiple of `align` meets
    read_only: str = "keeps"  # or "ignores": it may write
    always: str = ""  # COPIES: never shares memory
    converts: tuple[str, ...] = ()  # dtypes that it takes by converting them
    note: str = field(default="", compare=False)


CONSUMERS = (
    Consumer("numpy", "2.4.6", _NUMPY, devices=(1, 3, 11, 13)),
    Consumer("array_api_strict", "2.6.1", _without(_NUMPY, "float16"), devices=(1, 3, 11, 13)),
    Consumer("torch", "2.15.0",
             f"{_NUMPY} bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
             "float8_e8m0fnu float4_e2m1fnx2",
             devices=(1, 2, 3, 10, 11, 13, 14), strides="gaps", read_only="ignores"),
    Consumer("torch_2_8", "2.8.0", f"{_NUMPY} bfloat16", capsule="legacy",
             devices=(1, 2, 3, 10, 11, 13, 14), strides="gaps", reversed=BREAKS,
             byte_offset=BREAKS),
    Consumer("jax", "0.10.2", f"{_NUMPY} bfloat16 {_FP8}", capsule="legacy", devices=(1, 2, 10),
             strides="permuted", align=64, unaligned=COPIES),
    Consumer("tensorflow", "2.21.0", f"{_NUMPY} bfloat16", capsule="legacy", devices=(1, 2, 3),
             strides="C", byte_offset=REFUSES, align=64, unaligned=BREAKS),
    Consumer("cupy", "14.2.0", f"{_NUMPY}", devices=(2, 13), read_only="ignores",
             note="read from its source: no GPU there"),
    Consumer("tvm", "0.27.0", _EVERY, capsule="legacy", exchange_api=True,
             devices=tuple(range(1, 19)), strides="C", align=64, read_only="ignores"),
    Consumer("tvm_ffi", "0.1.15", _EVERY, capsule="legacy", exchange_api=True,
             devices=tuple(range(1, 19)), read_only="ignores"),
    Consumer("mxnet", "1.9.1", "int8 int32 int64 uint8 float16 float32 float64 bfloat16",
             capsule="legacy", devices=(1, 2, 3), strides="C", byte_offset=BREAKS),
    Consumer("paddle", "3.3.1", f"{_NUMPY} bfloat16 float8_e4m3fn float8_e5m2",
             devices=(1, 2, 3), strides="gaps", reversed=BREAKS, byte_offset=BREAKS,
             read_only="ignores"),
    Consumer("pyarrow", "26.0.1", _without(f"{_INTS} {_FLOATS}", "bool"), strides="gaps"),
    Consumer("onnxruntime", "1.31.1",
             _without(f"{_INTS} {_FLOATS} bfloat16", "bool"), capsule="legacy", devices=(1, 2),
             strides="C", byte_offset=BREAKS),
    Consumer("mlx", "0.32.4", _without(f"{_NUMPY} bfloat16", "float64", "complex128"),
             devices=(1, 8), strides="gaps", always=COPIES, converts=("float64", "complex128")),
    Consumer("mpi4py", "4.1.2", _EVERY, devices=(1, 2, 3, 13), strides="permuted",
             note="for sending; a read-only tensor is refused for receiving"),
    Consumer("dpctl", "0.21.1", _NUMPY, devices=(1, 14), byte_offset=BREAKS),
    Consumer("dpnp", "0.20.0", _NUMPY, devices=(1, 14), byte_offset=BREAKS),
)


def dense(shape: Sequence[int], strides: Sequence[int], order: str = "C") -> bool:
    """Whether elements fill a block: in row-major order, or, "permuted", in any order of axes."""
    if 0 in shape:
        return True
    axes = [(stride, extent) for extent, stride in zip(shape, strides) if extent != 1]
    if order == "permuted":
        axes.sort(key=lambda axis: axis[0], reverse=True)
    step = 1
    for stride, extent in reversed(axes):
        if stride != step:
            return False
        step *= extent
    return True


def judge(consumer: Consumer, tensor: Inspection) -> tuple[str, str]:
    """(verdict, reason) for a tensor with the attributes of dlpack_rs.Inspection."""
    if not tensor.valid:
        return BREAKS, "may believe a malformed struct"
    return next(_reasons(consumer, tensor), (TAKES, ""))


def _reasons(consumer: Consumer, tensor: Inspection) -> Iterator[tuple[str, str]]:
    shape = tensor.shape or ()
    empty, strides = 0 in shape, tensor.strides or (0,) * len(shape)
    if tensor.device[0] not in consumer.devices:
        yield REFUSES, f"takes no tensors on {tensor.device_name}"
    direct = consumer.exchange_api and tensor.exchange_api
    if consumer.capsule == "legacy" and tensor.legacy_error and not direct:
        yield REFUSES, f"asks for a legacy capsule, and the producer says {tensor.legacy_error}"
    if tensor.dtype_name not in consumer.dtypes.split() + list(consumer.converts):
        yield REFUSES, f"has no {tensor.dtype_name}"
    if not empty and any(stride < 0 for stride, extent in zip(strides, shape) if extent > 1):
        if consumer.strides == "gaps":
            yield consumer.reversed, "negative strides"
    if consumer.strides in ("C", "permuted") and not dense(shape, strides, consumer.strides):
        wanted = {"C": "dense in row-major order", "permuted": "one dense block"}
        yield REFUSES, f"elements must lie {wanted[consumer.strides]}"
    if tensor.byte_offset and consumer.byte_offset != TAKES and not empty:
        ignores = "ignores byte_offset and shows other memory"
        yield (consumer.byte_offset,
               ignores if consumer.byte_offset == BREAKS else "byte_offset must be 0")
    if not empty and tensor.address and tensor.address % consumer.align:
        yield consumer.unaligned, f"the address is no multiple of {consumer.align}"
    if consumer.always:
        yield consumer.always, "never shares host memory"
    if tensor.dtype_name in consumer.converts:
        yield COPIES, f"converts {tensor.dtype_name}"
    if tensor.read_only and consumer.read_only == "ignores":
        yield TAKES, "but ignores READ_ONLY: it may write"
