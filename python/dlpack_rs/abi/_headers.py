"""The C headers, and the declarations that cffi's parser accepts."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_LIMITS = {"INT32_MIN": -2**31, "INT64_MIN": -2**63}


def include() -> Path:
    """The include folder: it has dlpack.h, dlpack_rs.h and dlpack_rs.hpp."""
    given = os.environ.get("DLPACK_RS_INCLUDE")
    if given:
        return Path(given)
    installed = _HERE.parent / "include" / "dlpack"
    return installed if installed.is_dir() else _HERE.parents[2] / "include"


def cdef(*headers: str) -> str:
    """Declarations for cffi's ffi.cdef(): of both headers, or of those named.

    No comments, no preprocessor; of the macros those that are whole numbers, written out.
    """
    return "\n".join(_declarations((include() / name).read_text())
                     for name in headers or ("dlpack.h", "dlpack_rs.h"))


def words(comment: str) -> str:
    """The text of a comment, without its frame."""
    lines = [re.sub(r"^\s*\*? ?", "", line) for line in comment.strip().splitlines()]
    return "\n".join(line.rstrip() for line in lines).strip()


@functools.cache
def prototypes() -> dict[str, tuple[str, str]]:
    """(prototype, comment) of each function of dlpack_rs.h, by its name: its manual."""
    text = (include() / "dlpack_rs.h").read_text()
    each = r"/\*\*((?:(?!\*/).)*)\*/\s*DLRS_API\s+([^;(]*?(\w+)\([^;]*;)"
    return {name: (" ".join(prototype.split()), words(comment))
            for comment, prototype, name in re.findall(each, text, re.DOTALL)}


def _declarations(text: str) -> str:
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).replace("\\\n", " ")
    kept: list[str] = []
    seen: list[bool] = []
    known = dict(_LIMITS)
    for line in text.splitlines():
        if re.match(r"\s*#\s*if", line):
            seen.append("ifndef" in line)  # the include guard; all other conditions are false
        elif re.match(r"\s*#\s*else", line):
            seen[-1] = not seen[-1]
        elif re.match(r"\s*#\s*endif", line):
            seen.pop()
        elif all(seen):
            kept.append(_number(line, known) if "#" in line else line.replace("DLRS_API", ""))
    return "\n".join(line for line in kept if line.strip())


def _number(line: str, known: dict[str, int]) -> str:
    """`#define NAME 8` for a macro that is a number in any of C's spellings; else nothing.

    Other macros may be named in it, if they are among those known, to which it is added.
    """
    found = re.match(r"\s*#\s*define (\w+) +(.+)", line)
    if not found:
        return ""
    name, value = found.groups()
    value = re.sub(r"[A-Z]\w+", lambda word: str(known.get(word[0], word[0])), value)
    value = re.sub(r"(\d)[UuLl]+", r"\1", value)
    if not re.fullmatch(r"[\d\s()+*<-]+", value):
        return ""
    known[name] = eval(value)
    return f"#define {name} {known[name]}"
