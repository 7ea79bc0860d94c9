#!/usr/bin/env python3
"""Compiles kernels.cu with hiprtc, as the library does at run time.

    compile_hip.py LIBAMDHIP64 SOURCE GPU

Needs no GPU.
"""

import ctypes
import re
import sys


def compile_for(hiprtc, source, gpu):
    def text(name):
        size = ctypes.c_size_t()
        getattr(hiprtc, f"hiprtcGet{name}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value + 1)
        getattr(hiprtc, f"hiprtcGet{name}")(program, buffer)
        return buffer.raw[: size.value]

    program = ctypes.c_void_p()
    options = [f"--gpu-architecture={gpu}".encode()]
    hiprtc.hiprtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    status = hiprtc.hiprtcCompileProgram(program, len(options),
                                         (ctypes.c_char_p * len(options))(*options))
    if status != 0:
        return None, text("ProgramLog").decode(errors="replace")
    return text("Code"), ""


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    hiprtc = ctypes.CDLL(sys.argv[1])
    with open(sys.argv[2], "rb") as file:
        source = file.read()
    kernels = re.findall(rb"^KERNEL (dlrs_\w+)\(", source, re.MULTILINE)
    code, log = compile_for(hiprtc, source, sys.argv[3])
    missing = [name.decode() for name in kernels if code is None or name not in code]
    if missing or not kernels:
        sys.exit(f"{log}kernels missing: {', '.join(missing)}")


if __name__ == "__main__":
    main()
