#!/usr/bin/env python3
"""AMD's real runtime on a machine without its GPU: the library loads it and reports that.

    no_device.py LIBDLPACK_RS LIBAMDHIP64
"""

import os
import sys
from ctypes import byref, c_int32
from pathlib import Path

os.environ["DLPACK_RS_LIBRARY"] = sys.argv[1]
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from dlpack_rs import abi  # noqa: E402

PATH = sys.argv[2].encode()  # the library keeps the pointer
ROCM = 10
abi.call(abi.lib.dlrs_driver_path_set, ROCM, PATH)
error, count = abi.dlrs_error(), c_int32(-1)
error.struct_size = abi.sizeof(error)
status = abi.lib.dlrs_device_count(ROCM, byref(count), byref(error))
print(f"{Path(sys.argv[2]).resolve().name}: {status}, driver {error.driver_code}: {error.message.decode()}")
loaded = os.path.realpath(PATH.decode()) in Path("/proc/self/maps").read_text()
sys.exit(not (loaded and (status == abi.DLRS_NO_DEVICE or count.value > 0)))  # there is one after all
