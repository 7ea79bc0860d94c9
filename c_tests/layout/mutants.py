#!/usr/bin/env python3
"""Checks that dlpack_rs_layout.h detects every change of the ABI in a dlpack.h: mutants.py INCLUDE

Each member of each struct gets another one before it, is removed, or gets another type of the same
size; each code and flag gets another value. C99 cannot detect a type. The unchanged header must
pass. The last line is "N passed, M failed".
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

include = Path(sys.argv[1]).resolve()
lines = (include / "dlpack.h").read_text().splitlines()
OTHER = {
    "uint8_t": "int8_t", "uint16_t": "int16_t", "uint32_t": "int32_t", "uint64_t": "int64_t",
    "int32_t": "uint32_t", "int64_t*": "uint64_t*", "void*": "char*", "void *": "char *",
    "void (*": "int (*", "struct DLPackExchangeAPIHeader*": "struct DLPackExchangeAPI*",
    "DLPackManagedTensorToPyObjectNoSync": "DLPackManagedTensorFromPyObjectNoSync",
    "DLPackCurrentWorkStream": "DLPackDLTensorFromPyObjectNoSync",
    "DLPackDLTensorFromPyObjectNoSync": "DLPackCurrentWorkStream",
    "DLPackManagedTensorAllocator": "DLPackCurrentWorkStream",
    "DLPackManagedTensorFromPyObjectNoSync": "DLPackManagedTensorToPyObjectNoSync",
}
MEMBER = re.compile(r"  ([A-Za-z].*?[ *(])(\w+)\)?(\(.*\))?;$")
DIALECTS = {"c99": ["gcc", "-xc"], "c11": ["gcc", "-xc"], "c++17": ["g++", "-xc++"]}


def mutants():
    """(the change, text, whether only a type differs)"""
    def changed(number, *instead):
        return "\n".join(lines[:number] + list(instead) + lines[number + 1:]) + "\n"
    inside = False
    for number, line in enumerate(lines):
        if re.match(r"typedef (struct|enum)\b.*\{$", line):
            inside = True
        elif line.startswith("}"):
            inside = False
        code = re.fullmatch(r"  (kDL\w+) = (\d+)(U?),", line)
        flag = re.fullmatch(r"#define (DLPACK_FLAG_\w+) \(1UL << (\d)UL\)", line)
        member = inside and MEMBER.fullmatch(line)
        if code:
            name, value, unsigned = code.groups()
            yield f"{name} + 40", changed(number, f"  {name} = {int(value) + 40}{unsigned},"), False
        elif flag:
            other = f"#define {flag[1]} (32UL << {flag[2]}UL)"
            yield f"{flag[1]} << 5", changed(number, other), False
        elif member:
            name = f"{number + 1}: {line.strip()}"
            yield f"before {name}", changed(number, "  int64_t mutant;", line), False
            yield f"without {name}", changed(number), False
            for one, another in OTHER.items():
                if re.match(r"  " + re.escape(one) + r"(?![\w*])", line):
                    text = changed(number, line.replace(one, another, 1))
                    yield f"{another} in {name}", text, True


def accepted(folder, job):
    index, text, standard = job
    header = Path(folder) / f"{index}.h"
    header.write_text(text)
    command = DIALECTS[standard] + [f"-std={standard}", "-fsyntax-only", "-include", str(header),
                                    str(include / "dlpack_rs_layout.h")]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def main():
    jobs, wants = [], []
    for index, (what, text, type_only) in enumerate(
            [("nothing", "\n".join(lines) + "\n", False), *mutants()]):
        for standard in DIALECTS:
            if not (type_only and standard == "c99"):
                jobs.append((f"{index}-{standard}", text, standard))
                wants.append((what, standard, index == 0))
    failed = 0
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda job: accepted(folder, job), jobs)
        for got, (what, standard, want) in zip(results, wants):
            if got != want:
                failed += 1
                print(f"{standard}: {what}: {'accepted' if got else 'refused'}")
    enough = len({what for what, *_ in wants}) > 100  # the header is still parsed
    if not enough:
        print("too few changes were found in dlpack.h")
    print(f"{len(wants) - failed} passed, {failed + (not enough)} failed")
    return failed > 0 or not enough


sys.exit(main())
