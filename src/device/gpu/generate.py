#!/usr/bin/env python3
"""Writes kernels.ptx from kernels.cu, by NVRTC of CUDA 11.8, for compute capability 5.0.

    generate.py LIBNVRTC [OUTPUT]

The version is written down as 6.4, which has everything that the kernels use: a driver refuses PTX of
a version above its own, and those of CUDA 11.0 to 11.7 are below NVRTC's 7.8. So it loads on every
driver since CUDA 11.0 and every GPU since Maxwell. What NVRTC says only to readers (comments,
indentation) is left out.
"""

import ctypes
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OPTIONS = [b"--gpu-architecture=compute_50", b"--std=c++17"]


def compile_ptx(nvrtc, source):
    def call(name, *arguments):
        status = getattr(nvrtc, name)(*arguments)
        if status != 0:
            said = text("Log") if name == "nvrtcCompileProgram" else ""
            sys.exit(f"{name} returned {status}\n{said}")

    def text(what):
        size = ctypes.c_size_t()
        call(f"nvrtcGet{'ProgramLog' if what == 'Log' else what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        call(f"nvrtcGet{'ProgramLog' if what == 'Log' else what}", program, buffer)
        return buffer.value.decode("ascii")

    program = ctypes.c_void_p()
    call("nvrtcCreateProgram", ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    call("nvrtcCompileProgram", program, len(OPTIONS), (ctypes.c_char_p * len(OPTIONS))(*OPTIONS))
    return text("PTX")


VERSIONS = ".version 7.8", ".version 6.4"


def shorten(ptx):
    """The same program without comments and indentation, with short names for what is local."""
    if ptx.count(VERSIONS[0]) != 1:
        sys.exit(f"NVRTC did not write {VERSIONS[0]}")
    ptx = ptx.replace(*VERSIONS)
    ptx = re.sub(r"//.*", "", ptx)
    ptx = re.sub(r"[ \t]+", " ", ptx)
    ptx = re.sub(r" ?, ?", ",", ptx)
    ptx = re.sub(r"\bdlrs_\w+_param_0\b", "p", ptx)
    ptx = re.sub(r"\$L__BB", "$", ptx)
    ptx = re.sub(r"\b_ZZ\d+dlrs_\w+?E\d+(\w+)", r"\1", ptx)
    lines = (line.strip() for line in ptx.splitlines())
    return "\n".join(line for line in lines if line) + "\n"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    output = Path(sys.argv[2]) if len(sys.argv) == 3 else HERE / "kernels.ptx"
    nvrtc = ctypes.CDLL(sys.argv[1])
    version = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(*(ctypes.byref(part) for part in version))
    if (version[0].value, version[1].value) != (11, 8):
        sys.exit(f"NVRTC 11.8 is needed, this is {version[0].value}.{version[1].value}")
    output.write_text(shorten(compile_ptx(nvrtc, (HERE / "kernels.cu").read_bytes())))


if __name__ == "__main__":
    main()
