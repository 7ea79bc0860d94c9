#!/usr/bin/env python3
"""Writes the sources of the site into the folder given: pages of docs/ and of the repository, one
page for each status code (of docs/status.md) and for each section of the header, and pictures.
conf.py is for Sphinx, which makes the site of them; check.py looks at the result."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
REPOSITORY = "https://github.com/libdlpack-rs/libdlpack_rs/blob/main/"
# Pages that stand outside of docs/ in the repository, and their names on the site.
OUTSIDE = {"python/README.md": "package_python.md", "examples/README.md": "examples.md",
           "examples/adopt/README.md": "adopt.md", "CONTRIBUTING.md": "contributing.md",
           "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
LINK = re.compile(r"(!?\[[^\]]*\])\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")
# A documented declaration of the header: its first word, and its name.
DECLARED = re.compile(r"\*/\n(?:DLRS_API\s+)?(?:(#define|typedef|struct|enum) )?.*?"
                      r"\b((?:DLRS|dlrs)_\w+)(?:\)?\(|;| \{| [(\d{\\]|\n)")
KINDS = {"#define": "macro", "struct": "struct", "enum": "enum", "typedef": "type", "": "function"}
ROLES = {"function": "func", "typedef": "type"}
HEADER = (ROOT / "include/dlpack_rs.h").read_text()
STATUSES = frozenset(re.findall(r"^## (DLRS_\w+)", (ROOT / "docs/status.md").read_text(), re.M))
SECTION = re.compile(r"^/\* -{40,}\n(.*?)\*/\n", re.M | re.S)
DECLARATIONS = {name: KINDS[kind] for part in SECTION.split(HEADER)[2::2]
                for kind, name in DECLARED.findall(part)}


def pages():
    """Each page of the repository with its place on the site."""
    found = {file.relative_to(ROOT): file.relative_to(ROOT / "docs")
             for file in sorted((ROOT / "docs").rglob("*.md"))}
    found |= {Path(file): Path(name) for file, name in OUTSIDE.items()}
    del found[Path("docs/status.md")]  # cut into pages
    return found


def linked(text, page, place, known):
    """The page's text: links to other pages lead to them, those to files into the repository."""
    def one(match):
        label, target, anchor = match[1], match[2], match[3] or ""
        there = (ROOT / page.parent / target).resolve()
        if not there.exists():
            raise SystemExit(f"{page}: {target} does not exist")
        inside = there.relative_to(ROOT)
        if inside == Path("docs/status.md"):
            code = anchor.lstrip("#").rpartition("-")[0].upper()
            new = f"status/{code or 'index'}.md"
            return f"{label}({up(place)}{new})"
        if inside in known:
            return f"{label}({up(place)}{known[inside]}{anchor})"
        if inside == Path("include/dlpack_rs.h"):
            return f"{label}({up(place)}c/index.md)"
        return f"{label}({REPOSITORY}{inside})"

    def absolute(match):
        """The package's page is read elsewhere too, and names pages by their addresses."""
        inside = Path(match[1])
        return f"]({os.path.relpath(inside, page.parent) if inside in known else match[0][2:]}"

    text = re.sub(rf"\]\({re.escape(REPOSITORY)}([^)#\s]+)", absolute, text)
    return named(LINK.sub(one, text), place)


def filled(text):
    """The text with the tables that `<!-- table SCRIPT ARGUMENT... -->` asks for: what the script
    prints."""
    def one(match):
        script, *arguments = shlex.split(match[1])
        return subprocess.run([sys.executable, "-B", ROOT / script, *arguments], check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    return re.sub(r"^<!-- table (.*) -->\n", one, text, flags=re.M)


def named(text, place):
    """The text with names of functions, types and statuses as links; not those in headings, in
    blocks of code and in links."""
    def one(match):
        name = match[1]
        if name in STATUSES:
            return f"[`{name}`]({up(place)}status/{name}.md)"
        kind = DECLARATIONS.get(name)
        return f"{{c:{ROLES.get(kind, kind)}}}`{name}`" if kind else match[0]

    parts = re.split(r"(^```.*?^```$|^#.*$|\[[^\]]*\]\([^)]*\))", text, flags=re.M | re.S)
    parts[::2] = [re.sub(r"`((?:dlrs|DLRS)_\w+)(?:\(\))?`", one, part) for part in parts[::2]]
    return "".join(parts)


def pictures(text):
    """Pictures inside of the page, so that they have its colours, light or dark."""
    def one(match):
        svg = (ROOT / "docs/pictures" / match[1]).read_text().replace("tip", match[1][:-4])
        return f"```{{raw}} html\n<div class=\"picture\">{svg}</div>\n```"

    return re.sub(r"!\[[^\]]*\]\((?:\.\./)*pictures/(\w+\.svg)\)", one, text)


def up(place):
    """From a page's folder to that of the site."""
    return "../" * (len(place.parts) - 1)


def first_sentence(text):
    words = " ".join(text.strip().partition("\n\n")[0].split())
    return re.split(r"(?<=\.) ", words)[0]


def statuses(known):
    """Pages of docs/status.md, to which status.py has added messages: name and text."""
    head, *parts = re.split(r"^## (DLRS_\w+) \((\d+)\)\n", (ROOT / "target/status.md").read_text(),
                            flags=re.M)
    place = Path("status/index.md")
    rows = "".join(f"| {number} | [{name}]({name}.md) | {first_sentence(text)} |\n"
                   for name, number, text in zip(parts[::3], parts[1::3], parts[2::3]))
    toc = "".join(f"{name}\n" for name in parts[::3])
    yield "index", (linked(head, Path("docs/status.md"), place, known) +
                    f"\n| number | status | meaning |\n|--:|---|---|\n{rows}\n"
                    f"```{{toctree}}\n:hidden:\n\n{toc}```\n")
    for name, number, text in zip(parts[::3], parts[1::3], parts[2::3]):
        yield name, f"# {name} ({number})\n" + linked(text, Path("docs/status.md"), place, known)


def manual():
    """Pages of the header: title and text, in its order. Sections `Views: ...` are one page."""
    pieces = SECTION.split(HEADER)
    made = {}
    for comment, code in zip(pieces[1::2], pieces[2::2]):
        words, _, rest = re.sub(r"^ \* ?", "", comment, flags=re.M).strip().partition("\n\n")
        title, colon, more = " ".join(words.split()).partition(": ")
        title = title.rstrip(".").split(",")[0].replace("libdlpack_rs", "The contract")
        rest = re.sub(r"^([A-Z][a-z]+(?:, [a-z]+)*)\. ", r"**\1.** ", rest, flags=re.M)
        lines = [f"\n## {more[:1].upper()}{more[1:].rstrip('.')}\n" if colon else "", rest, "",
                 "```{eval-rst}"]
        for kind, name in DECLARED.findall(code):
            what = KINDS[kind]
            lines += [f".. c:auto{what}:: {name}", "   :file: dlpack_rs.h"]
            lines += ["   :members:"] if what in ("struct", "enum") else []
            lines.append("")
        functions = [name for kind, name in DECLARED.findall(code) if KINDS[kind] == "function"]
        if len(functions) > 1: # what is on this page, before it
            lines.insert(2, " · ".join(f"{{c:func}}`{name}`" for name in functions) + "\n")
        made[title] = made.get(title, f"# {title}\n") + "\n".join(lines) + "```\n"
    return made


def main(out):
    out = Path(out)
    shutil.rmtree(out, ignore_errors=True)
    known = pages()
    for page, place in known.items():
        (out / place).parent.mkdir(parents=True, exist_ok=True)
        text = pictures(filled((ROOT / page).read_text()))
        (out / place).write_text(linked(text, page, place, known))
    (out / "status").mkdir()
    for name, text in statuses(known):
        (out / "status" / f"{name}.md").write_text(text)
    (out / "c").mkdir()
    names = []
    for title, text in manual().items():
        names.append(re.sub(r"\W+", "-", title.lower()).strip("-"))
        (out / "c" / f"{names[-1]}.md").write_text(text)
    (out / "c/index.md").write_text(
        "# The C functions\n\nThe contract that all share, and a page for each section of "
        "`dlpack/dlpack_rs.h`.\n\n```{toctree}\n:maxdepth: 1\n\n" + "\n".join(names) + "\n```\n")


if __name__ == "__main__":
    main(sys.argv[1])
