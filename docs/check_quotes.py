#!/usr/bin/env python3
"""Code in the documentation is quoted from files that are compiled and run: this checks it.

In a Markdown file, `<!-- quote examples/c/hello.c hello -->` stands before a fenced block that must
equal the lines between `[quote:hello]` and `[/quote]` in that file, without their common indent;
without a name it must equal the whole file. `--fix` rewrites the blocks instead.

And names: each `dlrs_...` and `DLRS_...` in the documentation stands in a header. And
generated pages: they equal what GENERATORS make of data files. And words: what the glossary
(docs/glossary.md) has a better word for stands nowhere in sources or documentation.
"""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REGION = re.compile(r"^[^\n]*\[quote:(\w+)\][^\n]*\n(.*?)^[^\n]*\[/quote\]", re.M | re.S)
BLOCK = re.compile(r"(^<!-- quote (\S+)(?: (\w+))? -->\n+```\w*\n)(.*?)(^```$)", re.M | re.S)
MARK = re.compile(r"^<!-- quote ", re.M)
NAME = re.compile(r"(?<!#)\b(?:dlrs|DLRS)_\w*[a-zA-Z0-9]\b(?!_)")  # not `dlrs_view_*`, no anchor

# What is written, and the field's word for it.
WORDS = {
    r"past the caches": "non-temporal store", r"want of memory": "memory is exhausted",
    r"likewise": "say it again", r"on any threads": "thread-safe",
    r"(?:ask|asks|asked|asking) for (?:cache )?lines": "prefetch",
    r"of no (?:byte|element)": "empty", r"turned round": "reversed",
    r"the nearest cache": "L1", r"in the near(?:est)? level": "L1",
    r"memory of the host": "host memory", r"got here": "completed", r"picky": "strict",
    r"is told": "receives, reports", r"(?:let|lets) go": "release", r"by way of": "through",
    r"hands? on": "passes on", r"nobody knows": "unknown", r"knows better": "say what",
    r"as asked(?! for)": "as requested", r"put into words": "message", r"is dead": "is invalid",
    r"beyond any memory": "exceeds the address space", r"of no argument": "argument 0",
    r"compiled into its caller": "inlined",
    r"holders?(?!\()": "reference or owner",  # not the C++ function of that name
    r"macro-face|of faces|large faces|small faces": "matrix",
}
# Scripts that make pages of data files, and compare them with `--check`.
GENERATORS = ["benches/page.py", "tests/interop/report.py", "tests/interop/conform.py", "docs/house.py"]
WORDS_IN = ["src", "crates", "include", "docs", "python", "conform", "conformance", "examples",
            "c_tests",
            "tests", "fuzz", "benches", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]


def quoted(path, name):
    """The text that a mark asks for; ValueError says what is wrong with the mark."""
    file = ROOT / path
    if not file.is_file():
        raise ValueError(f"{path} does not exist")
    text = file.read_text()
    if name is None:
        return text
    regions = dict(REGION.findall(text))
    if name not in regions:
        raise ValueError(f"{path} has no [quote:{name}] ... [/quote]")
    return textwrap.dedent(regions[name])


def check(file, fix):
    """Passed and failed quotes of one Markdown file."""
    text = file.read_text()
    passed = failed = 0

    def one(match):
        nonlocal passed, failed
        head, path, name, body, tail = match.groups()
        problem = "differs; run docs/check_quotes.py --fix"
        wanted = None
        try:
            wanted = quoted(path, name)
        except ValueError as error:
            problem = str(error)
        where = f"{file.relative_to(ROOT)}: {path} {name or ''}".rstrip()
        if wanted == body or (fix and wanted is not None):
            passed += 1
            print(f"pass  {where}")
            return head + wanted + tail
        failed += 1
        print(f"FAIL  {where}: {problem}")
        return match.group(0)

    fixed = BLOCK.sub(one, text)
    lost = len(MARK.findall(text)) - passed - failed
    if lost:
        failed += lost
        print(f"FAIL  {file.relative_to(ROOT)}: {lost} quote mark(s) without a fenced block")
    if fix and fixed != text:
        file.write_text(fixed)
    return passed, failed


def names(file, known):
    """Passed and failed names of one Markdown file."""
    found = set(NAME.findall(file.read_text()))
    for name in sorted(found - known):
        print(f"FAIL  {file.relative_to(ROOT)}: {name} is in no header")
    return len(found & known), len(found - known)


def words():
    """Passed and failed files, by their words."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *WORDS_IN,
                             ":!*.json", ":!*.svg", ":!docs/check_quotes.py"], cwd=ROOT,
                            check=True, capture_output=True, text=True).stdout.split()
    passed = failed = 0
    for name in listed:
        if (ROOT / name).is_dir():  # python/dlpack_conformance, a link
            continue
        text = " ".join((ROOT / name).read_text(errors="replace").split())
        found = [(word, better) for word, better in WORDS.items()
                 if re.search(rf"\b(?:{word})\b", text, re.I)]
        for word, better in found:
            print(f"FAIL  {name}: {word!r}, for which the glossary has {better!r}")
        passed, failed = passed + (not found), failed + len(found)
    return passed, failed


def main():
    headers = (ROOT / "include").glob("*.h*")
    known = set(NAME.findall("\n".join(header.read_text() for header in headers)))
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split()
    passed = failed = 0
    for name in listed:
        good, bad = check(ROOT / name, "--fix" in sys.argv[1:])
        passed, failed = passed + good, failed + bad
        good, bad = names(ROOT / name, known)
        passed, failed = passed + good, failed + bad
    good, bad = words()
    passed, failed = passed + good, failed + bad
    for script in GENERATORS:
        figures = subprocess.run([sys.executable, "-B", ROOT / script, "--check"])
        passed, failed = passed + (figures.returncode == 0), failed + (figures.returncode != 0)
    print(f"documentation: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
