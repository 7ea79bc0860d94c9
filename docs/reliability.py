#!/usr/bin/env python3
"""Runs the commands of the table in docs/reliability.md, and writes what they said into it.

    reliability.py [WORD]   those that have a number of hours (and that word in the command); the
                            last line is `N passed, N failed`

A row without a date is not run; so is one whose command fails, a tool that is missing included. Those
rows stand first.
"""

import datetime
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reliability.md"
TABLE = re.compile(r"(<!-- rows -->\n(?:\|.*\n){2})(.*?)(<!-- /rows -->)", re.S)
# What the figure of a command is, where it is not its counts.
FIGURES = {"make faults": r"of \d+ that were run: .*", "make miri": r"miri: \d+ of the runs failed",
           "make coverage": r"functions: .*; lines: .*"}


def run(what, command, hours):
    """Date and commit, which are empty where it failed, and what it said."""
    print(f"{what}: {command} (hours: {hours})", flush=True)
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    said = re.findall(FIGURES.get(command, r"\d+ passed, \d+ failed"), done.stdout)
    if done.returncode or not said:
        print(done.stdout[-2000:] + f"\nFAIL  {what}: status {done.returncode}")
        return "", f"**not run** {said[-1] if said else 'the command fails'}"
    commit = subprocess.check_output(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, text=True)
    print(f"pass  {what}: {said[-1]}", flush=True)
    return f"{datetime.date.today().isoformat()} {commit.strip()}", said[-1]


def main(word=""):
    text = PAGE.read_text()
    rows = [line[2:-2].split(" | ") for line in TABLE.search(text)[2].splitlines()]
    passed = failed = 0
    for row in rows:
        what, _, _, _, command, hours = row
        if hours.strip() and word in command:
            row[3], row[2] = run(what, command.strip("`"), hours)
            passed, failed = passed + bool(row[3]), failed + (not row[3])
            lines = "".join(f"| {' | '.join(row)} |\n" for row in
                            sorted(rows, key=lambda row: bool(row[3].strip())))
            PAGE.write_text(TABLE.sub(lambda found: found[1] + lines + found[3], text))
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
