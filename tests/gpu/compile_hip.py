#!/usr/bin/env python3
"""Compiles kernels.cu with hiprtc, as the library does at run time: each family by itself.

    compile_hip.py LIBAMDHIP64 SOURCE GPU

Every kernel must be there, and spill no vector register (scalar ones go to lanes of a vector
register, not to memory). Needs no GPU.
"""

import ctypes
import re
import sys


FAMILIES = 5


def compile_for(hiprtc, source, gpu, family):
    def text(name):
        size = ctypes.c_size_t()
        getattr(hiprtc, f"hiprtcGet{name}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value + 1)
        getattr(hiprtc, f"hiprtcGet{name}")(program, buffer)
        return buffer.raw[: size.value]

    program = ctypes.c_void_p()
    # The library's options.
    options = [f"--gpu-architecture={gpu}", "-std=c++17", f"-DDLRS_KERNELS={1 << family}"]
    options = [option.encode() for option in options]
    hiprtc.hiprtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    status = hiprtc.hiprtcCompileProgram(program, len(options),
                                         (ctypes.c_char_p * len(options))(*options))
    if status != 0:
        return None, text("ProgramLog").decode(errors="replace")
    log = text("ProgramLog").decode(errors="replace").rstrip("\0")
    return text("Code"), log


def spills(code):
    """The number of vector registers that each kernel of a code object spills: its metadata is
    MessagePack, in which a small number follows its name."""
    number = rb"\.vgpr_spill_count(?:([\x00-\x7f])|\xcc(.)|\xcd(..))"
    return [int.from_bytes(b"".join(digits), "big")
            for digits in re.findall(number, code, re.DOTALL)]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    hiprtc = ctypes.CDLL(sys.argv[1])
    with open(sys.argv[2], "rb") as file:
        source = file.read()
    kernels = re.findall(rb"^KERNEL (dlrs_\w+)\(", source, re.MULTILINE)
    found = []
    for family in range(FAMILIES):
        code, log = compile_for(hiprtc, source, sys.argv[3], family)
        if code is None or log:
            sys.exit(f"family {family}: {log}")
        here = [name for name in kernels if re.search(rb"\b%s\.kd\b" % name, code)]
        spilt = spills(code)
        if len(spilt) != len(here) or any(spilt):
            sys.exit(f"family {family}: {len(here)} kernels, spilling {spilt}")
        found += here
    if sorted(found) != sorted(kernels) or not kernels:
        sys.exit(f"kernels of no family, or of two: {set(kernels) ^ set(found)}, {found}")


if __name__ == "__main__":
    main()
