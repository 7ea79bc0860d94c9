#!/usr/bin/env python3
"""Writes the table of docs/platforms.md from results.json beside it, which is edited by hand after
the scripts of this folder have run.

    page.py            writes it
    page.py --check    fails where it differs from the data
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/platforms.md"
TABLE = re.compile(r"(<!-- results -->\n).*?(<!-- /results -->)", re.S)
COLUMNS = {"laws": "file", "C": "C tests", "C++": "C++ tests", "static": "static library",
           "Rust": "Rust tests"}


def table(targets):
    head = ["target", "executed on", *COLUMNS.values(), "passed, failed, skipped", "date",
            "command"]
    lines = [head, ["---"] * len(head)]
    for target in targets:
        rows = ", ".join(map(str, target["rows"])) if target["rows"] else "-"
        lines.append([target["target"], target["on"], *(target[name] for name in COLUMNS), rows,
                      target["date"] or "each change", f"`{target['command']}`"])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main(options):
    targets = json.loads((ROOT / "packaging/platforms/results.json").read_text())["targets"]
    text = PAGE.read_text()
    made = TABLE.sub(lambda found: found[1] + table(targets) + found[2], text)
    if "--check" not in options:
        PAGE.write_text(made)
    elif made != text or not TABLE.search(text):
        print("FAIL  docs/platforms.md is not what packaging/platforms/page.py makes of results.json")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
