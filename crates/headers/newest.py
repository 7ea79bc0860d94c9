#!/usr/bin/env python3
"""Names the codes of newer headers that this library does not know.

    newest.py FOLDER        of what is newest on PyPI, fetched into FOLDER: upstream's dlpack.h, in
                            TVM's wheel, and nanobind's list of its codes
    newest.py HEADER...     of these files

One line per header. The exit status is 1 if a code is not known.
"""

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import fetch

INCLUDE = fetch.HERE.parents[1] / "include"
WHEELS = {"apache-tvm-ffi": fetch.DLPACK_IN_WHEEL,
          "nanobind": "nanobind/include/nanobind/ndarray.h"}


def codes(text):
    """(dtype codes, device types) of a header, by number."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    dtypes, devices = {}, {}
    for body in re.findall(r"\benum\b[^{;]*\{([^}]*)\}", text):
        number, found = -1, {}
        for name, value in re.findall(r"(\w+)\s*(?:=\s*(\w+))?\s*(?:,|$)", body.strip()):
            number = int(value.rstrip("uU"), 0) if value else number + 1
            found[number] = name
        if found.get(0) in ("kDLInt", "Int"):
            dtypes = found
        elif found.get(1) == "kDLCPU":
            devices = found
    devices |= {int(number): name for name, number in re.findall(r"NB_DEVICE\((\w+), (\d+)\)", text)
                if name != "none"}
    return dtypes, devices


def known():
    dtypes, devices = codes((INCLUDE / "dlpack.h").read_text())
    newer = r"/\*\* (Dtype code|Device type) of[^/]*\*/\n#define (DLRS_CODE_\w+) (\d+)"
    for kind, name, number in re.findall(newer, (INCLUDE / "dlpack_rs.h").read_text()):
        (dtypes if kind == "Dtype code" else devices)[int(number)] = name
    return dtypes, devices


def unknown(text):
    """What a header has beyond the known codes, as `name = number`."""
    found = codes(text)
    if not any(found):
        sys.exit("newest.py: no codes were found: this is no header of DLPack, or has a new form")
    return [f"{name} = {number}" for kind, ours in zip(found, known())
            for number, name in sorted(kind.items()) if number not in ours]


def newest(folder, package, member):
    with tempfile.TemporaryDirectory(dir=folder) as into:
        fetch.run(fetch.python(folder), "-m", "pip", "download", "--quiet", "--no-deps",
                  "--disable-pip-version-check", "--retries=1", *fetch.ONE_WHEEL,
                  "-d", into, package)
        wheel = next(Path(into).glob("*.whl"))
        return "-".join(wheel.name.split("-")[:2]), zipfile.ZipFile(wheel).read(member)


def main():
    headers, status = {}, 0
    if not sys.argv[1:]:
        sys.exit(__doc__)
    for argument in map(Path, sys.argv[1:]):
        if argument.is_file():
            headers[argument.name] = argument.read_text()
            continue
        argument.mkdir(parents=True, exist_ok=True)
        for package, member in WHEELS.items():
            try:
                name, text = newest(argument.resolve(), package, member)
                headers[f"{name}: {member}"] = text.decode()
            except subprocess.CalledProcessError:
                print(f"newest header of {package}: not run, it could not be fetched")
    for name, text in headers.items():
        found = unknown(text)
        status |= bool(found)
        print(f"{name}: " + (f"NOT KNOWN: {', '.join(found)}; CONTRIBUTING.md says how to follow"
                             if found else "every code is known"))
    return status


if __name__ == "__main__":
    sys.exit(main())
