"""A tensor in the form that one framework's from_dlpack takes."""

from __future__ import annotations

from ctypes import byref, py_object

from . import Tensor, abi, asarray, from_dlpack
from ._inspect import Inspection
from .consumers import BREAKS, CONSUMERS, COPIES, REFUSES, Consumer, judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def prepare(x: Any, consumer: str, /, *, drop_read_only: bool = False) -> tuple[Tensor, str]:
    """Return x as a tensor that a framework's from_dlpack takes, and a line that says how.

    The tensor shares x's memory where the framework takes it as it is, and otherwise is a compact
    copy on the same device, aligned to 256 bytes. Read-only data is copied for a framework that
    does not keep the flag, because it asks for legacy capsules or ignores it; with drop_read_only
    it is shared without the flag: you promise that nobody writes to the result.

    consumer: a name of dlpack_rs.consumers.CONSUMERS, which has what each framework takes, measured
    at the version given there. BufferError: it takes no such tensor, copied or not.

    >>> tensor, how = dlpack_rs.prepare(b"1234", "jax")
    >>> how
    'jax: copied, it does not keep READ_ONLY'
    """
    limits = _limits(consumer)

    def refusal(reason: str) -> BufferError:
        return BufferError(f"prepare: {consumer} {limits.version} takes no such tensor: {reason}")

    tensor = asarray(x)
    if tensor.__dlpack_device__()[0] not in limits.devices:  # a copy is on the same
        where = "by to('cpu') first" if 1 in limits.devices else "to one that it takes"
        raise refusal(f"takes no tensors on {tensor.device}: copy it {where}")
    done = "shared"
    if tensor.readonly and not _keeps_read_only(limits):
        if drop_read_only:
            tensor = _without_read_only(tensor)
            done = "shared, READ_ONLY dropped by drop_read_only=True"
        else:
            tensor, done = tensor.copy(), "copied, it does not keep READ_ONLY"
    verdict, reason = judge(limits, Inspection(tensor))
    if verdict in (REFUSES, BREAKS):
        tensor, done = tensor.copy(), f"copied, {reason}"
        verdict, reason = judge(limits, Inspection(tensor))
    if verdict in (REFUSES, BREAKS):
        raise refusal(reason)
    if verdict == COPIES:
        done += f"; {consumer} copies it: {reason}"
    return tensor, f"{consumer}: {done}"


def _limits(name: str) -> Consumer:
    for consumer in CONSUMERS:
        if consumer.name == name:
            return consumer
    raise ValueError(f"prepare: consumer is {name!r}, and known are "
                     + ", ".join(consumer.name for consumer in CONSUMERS))


def _keeps_read_only(limits: Consumer) -> bool:
    """A legacy capsule has no flags."""
    return limits.capsule == "versioned" and limits.read_only == "keeps"


def _without_read_only(tensor: Tensor) -> Tensor:
    """The same memory, by a legacy struct, which has no flags."""
    versioned, legacy, capsule = abi.Versioned(), abi.Legacy(), py_object()
    abi.call(abi.pylib.dlrs_py_import, tensor, None, byref(versioned))
    try:
        abi.call(abi.lib.dlrs_to_legacy_take, byref(versioned), abi.DLRS_LEGACY_DROP,
                 byref(legacy))
        abi.call(abi.pylib.dlrs_py_capsule_new_legacy_take, byref(legacy), byref(capsule))
    finally:  # what was not taken
        abi.lib.dlrs_release(versioned)
        abi.lib.dlrs_release_legacy(legacy)
    return from_dlpack(abi.new_object(capsule), legacy_writable=True)
