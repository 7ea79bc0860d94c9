#!/usr/bin/env python3
"""Writes the table of docs/reliability.md from reliability.json beside it: for each kind of test its
target, the figure that was reached, when, at which commit, and the command that says so.

    reliability.py                writes it
    reliability.py --check        fails where it differs from the data
    reliability.py --run [WORD]   runs the commands (with that word) that need no other hardware,
                                  writes what they said into the data, and the table; the last line
                                  is `N passed, N failed`

A row without a date is not run; so is one whose command fails, a tool that is missing included.
"""

import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA, PAGE = ROOT / "docs/reliability.json", ROOT / "docs/reliability.md"
TABLE = re.compile(r"(<!-- rows -->\n).*?(<!-- /rows -->)", re.S)


def table(rows):
    """The red rows first."""
    lines = [["what", "target", "reached", "date, commit", "command"], ["---"] * 5]
    for row in sorted(rows, key=lambda row: bool(row["date"])):
        when = " ".join(filter(None, (row["date"], row["commit"])))
        lines.append([row["what"], row["target"], row["reached"] if when else
                      f"**not run** {row['reached']}".strip(), when,
                      f"`{row['command']}`" if row["command"] else ""])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def run(row):
    """Whether it passed; what it said is in the row."""
    print(f"{row['what']}: {row['command']} (hours: {row['hours']})", flush=True)
    done = subprocess.run(["bash", "-c", row["command"]], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    said = re.findall(row.get("figure", r"\d+ passed, \d+ failed"), done.stdout)
    if done.returncode or not said:
        print(done.stdout[-2000:] + f"\nFAIL  {row['what']}: status {done.returncode}")
        row |= {"date": "", "commit": "", "reached": said[-1] if said else "the command fails"}
        return False
    commit = subprocess.check_output(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, text=True)
    row |= {"date": datetime.date.today().isoformat(), "commit": commit.strip(), "reached": said[-1]}
    print(f"pass  {row['what']}: {row['reached']}", flush=True)
    return True


def main(options):
    rows = json.loads(DATA.read_text())
    failed = passed = 0
    if options[:1] == ["--run"]:
        for row in rows:
            if row["hours"] and all(word in row["command"] for word in options[1:]):
                good = run(row)
                passed, failed = passed + good, failed + (not good)
                lines = ",\n ".join(json.dumps(row, ensure_ascii=False) for row in rows)
                DATA.write_text(f"[{lines}]\n")
    text = PAGE.read_text()
    made = TABLE.sub(lambda found: found[1] + table(rows) + found[2], text)
    if options == ["--check"]:
        if made != text or not TABLE.search(text):
            print("FAIL  docs/reliability.md is not what docs/reliability.py makes of the data")
            return 1
        return 0
    PAGE.write_text(made)
    if options:
        print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
