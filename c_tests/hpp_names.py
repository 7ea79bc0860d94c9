#!/usr/bin/env python3
"""Checks that every function of dlpack_rs.h has a C++ form. Compares the names declared there with
those called in the C++ headers: hpp_names.py INCLUDE. Exceptions are listed with a reason."""

import fnmatch
import re
import sys
from pathlib import Path

# Patterns, and why no C++ header of this library calls the functions that they match.
LEFT_OUT = {
    "dlrs_device_is_host": "is_host is constexpr; test_hpp_view compares the two",
    "dlrs_copy_desc": "dlrs_copy serves: a view lends a managed struct around its DLTensor",
    "dlrs_tensor_to_string": "dlrs_managed_to_string says the same of a view's managed struct",
}
# Functions that need Python, whose objects dlpack_rs_core.hpp lacks: dlpack_rs_python.hpp calls
# those that a C++ extension needs.
PYTHON = ("dlrs_py_*", "dlrs_exchange_api*", "dlrs_managed_tensor_allocator")


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def main():
    include = Path(sys.argv[1])
    header = without_comments((include / "dlpack_rs.h").read_text())
    declared = set(re.findall(r"\b(dlrs_\w+)\(", header.replace("(*", "")))
    declared &= set(re.findall(r"DLRS_API\s[^;]*?\b(dlrs_\w+)\(", header))
    sources = {path.name: without_comments(path.read_text()) for path in include.glob("*.hpp")}
    called = {name for text in sources.values() for name in re.findall(r"\bdlrs_\w+", text)}
    left_out = [*LEFT_OUT, *PYTHON]
    failures = []
    for name in sorted(declared - called):
        if not any(fnmatch.fnmatch(name, pattern) for pattern in left_out):
            failures.append(f"{name} has no C++ form")
    for name in LEFT_OUT:
        if name in called or name not in declared:
            failures.append(f"{name} is listed as left out, but is not")
    for failure in failures:
        print(f"hpp_names.py: {failure}")
    print(f"names: {len(declared) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures or not declared else 0


if __name__ == "__main__":
    sys.exit(main())
