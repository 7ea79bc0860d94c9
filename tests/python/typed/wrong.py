"""Mistakes that a type checker must find: exactly the lines with `# wrong`."""

from __future__ import annotations

from ctypes import byref, c_int32

import dlpack_conformance as conform
import dlpack_rs
from dlpack_rs import abi

dlpack_rs.from_dlpack(3)  # wrong
dlpack_rs.empty((2, 3), device=7)  # wrong
dlpack_rs.empty(2).copy(order="Z")  # wrong
dlpack_rs.empty(2).shape = (3,)  # wrong
dlpack_rs.inspect(1).nowhere  # wrong
abi.lib.dlrs_nowhere()  # wrong
abi.lib.dlrs_version(1)  # wrong
abi.lib.dlrs_nbytes("text", 0, None, None)  # wrong
abi.lib.dlrs_device_format(abi.DLDataType(), None, 0, None, None)  # wrong
abi.lib.dlrs_is_contiguous(abi.DLTensor(), "C", byref(c_int32()), None)  # wrong
abi.lib.dlrs_py_import(3, None, None, None)  # wrong
abi.DLTensor(rank=3)  # wrong
abi.DLTensor().ndim = "three"  # wrong
abi.DLDevice(1, 0).device_type.value  # wrong
abi.dlrs_free_fn(lambda a, b: None)  # wrong
abi.wrap(b"", (0,), 8)  # wrong
abi.enums.Level.LOOSE  # wrong
conform.judge("numpy", conform.CHECKS["P01"])  # wrong
