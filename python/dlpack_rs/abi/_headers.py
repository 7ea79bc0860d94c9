"""The C headers, and what a parser of plain C declarations (cffi) understands of them."""

import os
import re
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_SHIFT = re.compile(r"(\d+)[UL]*\s*<<\s*(\d+)[UL]*")


def include():
    """The folder to compile with: it holds dlpack.h, dlpack_rs.h and dlpack_rs.hpp."""
    given = os.environ.get("DLPACK_RS_INCLUDE")
    if given:
        return Path(given)
    installed = _HERE.parent / "include" / "dlpack"
    return installed if installed.is_dir() else _HERE.parents[2] / "include"


def cdef(*headers):
    """Declarations for cffi's ffi.cdef(): of both headers, or of those named.

    No comments, no preprocessor; of the macros those that are whole numbers, written out.
    """
    return "\n".join(_declarations((include() / name).read_text())
                     for name in headers or ("dlpack.h", "dlpack_rs.h"))


def _declarations(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).replace("\\\n", " ")
    kept, seen = [], []
    for line in text.splitlines():
        if re.match(r"\s*#\s*if", line):
            seen.append("ifndef" in line)  # the include guard; all other conditions are false
        elif re.match(r"\s*#\s*else", line):
            seen[-1] = not seen[-1]
        elif re.match(r"\s*#\s*endif", line):
            seen.pop()
        elif all(seen):
            kept.append(_number(line) if "#" in line else line.replace("DLRS_API", ""))
    return "\n".join(line for line in kept if line.strip())


def _number(line):
    """`#define NAME 8` for a macro that is a number in any of C's spellings; else nothing."""
    found = re.match(r"#define (\w+) +(.+)", line)
    if not found:
        return ""
    name, value = found.groups()
    value = value.strip("() ").replace("INT32_MIN", str(-2**31))
    value = _SHIFT.sub(lambda shift: str(int(shift[1]) << int(shift[2])), value)
    return f"#define {name} {value}" if re.fullmatch(r"-?\d+", value) else ""
