"""Sphinx: the site of docs/ (`make docs`). site.py writes the sources that this reads."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))
project = "libdlpack_rs"
copyright = "The libdlpack_rs authors, Apache-2.0"
release = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
extensions = ["myst_parser", "hawkmoth", "sphinx.ext.autodoc", "sphinx_copybutton"]
html_theme = "furo"
html_title = f"libdlpack_rs {release}"
html_static_path = [str(ROOT / "docs/site/static")]
html_css_files = ["site.css"]
highlight_language = "text"  # tables of the manual, messages

html_show_sphinx = False
nitpicky = True
# Types of the language and of dlpack.h, which no page documents.
nitpick_ignore_regex = [
    ("py:.*", r".*"),
    ("c:identifier", r"((u?int(\d+|ptr)|size|ptrdiff)_t|DL\w+|dlrs_\w+)"),
]
myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3
hawkmoth_root = str(ROOT / "include")
hawkmoth_clang = ["-std=c11"]
hawkmoth_transform_default = "manual"

FUNCTIONS = frozenset(line.split()[0] for line in
                      (ROOT / "include/exports.txt").read_text().splitlines())
STATUSES = frozenset(re.findall(r"^## (DLRS_\w+)", (ROOT / "docs/status.md").read_text(), re.M))
FIELD = re.compile(r"^([A-Z]\w*(?: \w+){0,2}|float8_e8m0fnu): +(?=\S)")
NAME = re.compile(r"`([^`\n]+)`|\b(dlrs_\w*[a-z0-9])\b(?:\(\))?(?!\*)|([*|]|_(?!\w))|(\w+_\w*[^\W_])")


def inline(match):
    """Code, and names of functions as references; what reST would take for markup is escaped."""
    code, name, special, _word = match.groups()
    if code:
        return f"``{code}``"
    if special:
        return "\\" + special
    if name in FUNCTIONS:
        return f":c:func:`{name}`"
    if match[0] in STATUSES:
        return f":doc:`{match[0]} </status/{match[0]}>`"
    return match[0]


def manual(_app, lines, transform, _options):
    """A comment of the header as reST. Aligned columns, as `Errors:    text`, become a list of
    fields, and indented tables blocks of text."""
    if transform != "manual":
        return
    out = []
    for paragraph in "\n".join(lines).strip("\n").split("\n\n"):
        rows = paragraph.split("\n")
        if rows[0].strip() == "Safety:":
            rows[:2] = ["Safety: " + "".join(rows[1:2])]
        if FIELD.match(rows[0]) and all(FIELD.match(row) or row[:1] == " " for row in rows):
            for row in rows:
                out.append(NAME.sub(inline, FIELD.sub(r":\1: ", row)) if FIELD.match(row) else
                           "   " + NAME.sub(inline, row.strip()))
        elif all(row.startswith(" ") for row in rows):
            out += ["::", "", *("   " + row for row in rows)]
        else:
            out += [NAME.sub(inline, row) for row in rows]
        out.append("")
    lines[:] = [line.replace("`(", "`\\ (") for line in out]


def setup(app):
    app.connect("hawkmoth-process-docstring", manual)
