#!/usr/bin/env python3
"""Check (e): cffi, which parses C without a compiler, accepts both headers.

    parse_cffi.py INCLUDE_FOLDER

Run it with a python that has cffi. cffi must find every name of exports.txt as a function.
"""

import re
import subprocess
import sys
from pathlib import Path

import cffi

BYTES = {"DLDevice": 8, "DLDataType": 4, "DLTensor": 48, "DLManagedTensor": 64,
         "DLManagedTensorVersioned": 80, "DLPackExchangeAPI": 56}


def declarations(folder, header):
    """The preprocessed text, without that of the system's headers: cffi defines int32_t."""
    text = subprocess.run(["cc", "-E", "-DDLRS_API=", "-x", "c", str(folder / header)],
                          check=True, capture_output=True, text=True).stdout
    kept, ours = [], False
    for line in text.splitlines():
        marker = re.match(r'# \d+ "(.*?)"', line)
        if marker:
            ours = Path(marker.group(1)).parent.resolve() == folder
        elif ours:
            kept.append(line)
    return "\n".join(kept)


def check(folder, header):
    ffi = cffi.FFI()
    ffi.cdef(declarations(folder, header))
    for name, size in BYTES.items():
        found = ffi.sizeof(name)
        if found != size and ffi.sizeof("void *") == 8:
            sys.exit(f"{header}: cffi says that {name} has {found} bytes, not {size}")
    return ffi


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1]).resolve()
    check(folder, "dlpack.h")
    ffi = check(folder, "dlpack_rs.h")
    library = ffi.dlopen(None)  # of this process: only the declarations matter
    declared = set(dir(library))
    listed = [line.split()[0] for line in (folder / "exports.txt").read_text().splitlines()]
    missing = [name for name in listed if name not in declared]
    if missing:
        sys.exit(f"dlpack_rs.h: cffi sees no function {', '.join(missing)}")
    print(f"cffi {cffi.__version__} parses both headers: {len(declared)} functions and codes")


if __name__ == "__main__":
    main()
