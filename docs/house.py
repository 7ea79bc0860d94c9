#!/usr/bin/env python3
"""Writes the table of the crates in CONTRIBUTING.md from their Cargo.toml and lib.rs; --check fails
where it differs."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
MARK = re.compile(r"(<!-- house -->\n).*?(<!-- /house -->)", re.S)
DEVELOPMENT = {"headers"}


def crates():
    """{name: (folder, names of the crates that it may use, what it is)}"""
    found = {}
    for file in [ROOT / "Cargo.toml", *ROOT.glob("crates/*/Cargo.toml"), ROOT / "python/module/Cargo.toml"]:
        text = file.read_text()
        name = re.search(r'^name = "(?:dlpack_)?(\w+)"', text, re.M)[1]
        used = text.partition("[dependencies]\n")[2].partition("\n[")[0]
        uses = re.findall(r"^(?:dlpack_)?(\w+) = \{.*path = ", used, re.M)
        uses = ["rs" if use == "core_lib" else use for use in uses]
        source = file.parent / ("lib.rs" if name == "rs_cdylib" else "src/lib.rs")
        comment = re.match(r"(//! .*\n|//!\n)+", source.read_text())[0].replace("\n//! ", " ")
        if name not in DEVELOPMENT:
            what = re.match(r"//! (.*?)\.(?= |\n)", comment)[1].replace("[`", "`").replace("`]", "`")
            found[name] = (file.parent.relative_to(ROOT), uses, what)
    return found


def layers(found):
    """The names in rows, each above those that it may use."""
    height = {}

    def of(name):
        if name not in height:
            height[name] = max((of(other) for other in found[name][1]), default=0) + 1
        return height[name]

    return [sorted(name for name in found if of(name) == row)
            for row in range(max(map(of, found)), 0, -1)]


def table():
    found = crates()
    rows = [("crate", "what it is", "may use"), ("---", "---", "---")]
    for name in sum(layers(found), []):
        folder, uses, what = found[name]
        place = "src" if folder == Path(".") else folder
        rows.append((f"`{place}`", what, ", ".join(sorted(uses)) or "nothing"))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main():
    text = PAGE.read_text()
    new = MARK.sub(lambda found: found[1] + table() + found[2], text)
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(new)
    elif new != text:
        sys.exit("FAIL  CONTRIBUTING.md is not what docs/house.py makes of the crates")


if __name__ == "__main__":
    main()
