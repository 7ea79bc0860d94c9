#!/usr/bin/env python3
"""Writes docs/interop.md from results.json, which run.py writes.

    report.py            writes it
    report.py --check    fails where it differs from the data
"""

import json
import platform
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent
DATA, PAGE = HERE / "results.json", HERE.parents[1] / "docs/interop.md"

TO_US = {"protocol": "export", "straight": "export direct", "and back": "export and back",
         "copy=": "export copy", "0-d": "export 0-d", "size 0": "export empty",
         "transposed": "export transposed",
         "reversed": "export reversed", "READ_ONLY": "export read-only",
         "their deleter": "export deleter"}
TO_THEM = {"dense": "import", "0-d": "import 0-d", "size 0": "import empty",
           "transposed": "import transposed", "reversed": "import reversed",
           "gaps": "import gapped", "broadcast": "import broadcast",
           "byte_offset": "import byte_offset", "raw offset": "import raw offset",
           "unaligned": "import unaligned",
           "READ_ONLY": "import read-only", "our deleter": "import deleter",
           "prepared": "prepared", "exit": "exit"}

# Types that are listed under one name where all of them are supported.
GROUPS = {
    "int8 to int64": ("int8", "int16", "int32", "int64"),
    "uint8 to uint64": ("uint8", "uint16", "uint32", "uint64"),
    "float16 to float64": ("float16", "float32", "float64"),
    "complex": ("complex64", "complex128"),
    "every float8": ("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
                     "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
}

HEAD = """# Interoperation

Tensors exchanged with each framework in both directions through this library. Written by
`make interop` from [results.json](../tests/interop/results.json): {date}, Python {python},
{machine}, no GPU. Each framework runs in its own environment;
[checks.py](../tests/interop/checks.py) has the checks. `.ci/run` repeats them and compares.

| result | meaning |
|---|---|
| yes | no copy (equal addresses, and writes are visible), right values, freed once |
| copied | the framework copied; the values are right |
| refused | an exception; our tensor is unchanged and freed once |
| fault | the framework accepts the tensor and then shows wrong values, fails or crashes |
| **WRONG** | a fault of this library |
| - | not applicable |"""
TO_US_HEAD = """
## From frameworks

*protocol*: the version exported for `max_version=(1, 3)`. *straight*: how `from_dlpack(x)` got
the tensor. *and back*: returned to the framework; refused where it exports and imports legacy
tensors only, because what comes from one counts as read-only, which a legacy tensor cannot express.
*copy=*: `copy=True` copies and sets the flag, `copy=False` does not copy. *READ_ONLY*: read-only
data keeps the flag.
"""
TO_THEM_HEAD = """
## To frameworks

*reversed*: negative strides. *gaps*: sliced rows. *broadcast*: stride 0. *byte_offset*: an offset
that `Tensor` adds to `data`; *raw offset*: one that is left in the struct. *unaligned*: 4 bytes
past a multiple of 256. *READ_ONLY*: whether the flag is kept; *ignored*: the framework writes.
*prepared*: what `dlpack_rs.prepare` returns of dense, unaligned, transposed, reversed and sliced,
writable and READ_ONLY tensors is taken, and the line that it says is true.
*exit*: the process ends cleanly with tensors of both sides alive.
"""
DTYPES_HEAD = """
## Types

Eight elements of each type, to the framework and back, must keep their bytes. Types that are not
listed are refused.

| system | same memory | copied | other |
|---|---|---|---|"""


class Notes:
    """Long texts, printed once and numbered."""

    def __init__(self):
        self.texts = []

    def mark(self, word, text):
        if text not in self.texts:
            self.texts.append(text)
        return f"{word} [{self.texts.index(text) + 1}]"


def cell(found, notes):
    if found is None:
        return "-"
    result, text = found
    if result == "ok":
        plain = {"works": "yes", "zero-copy": "yes", "once": "yes", "clean": "yes", "kept": "yes",
                 "as it says": "yes",
                 "__dlpack__": "`__dlpack__`"}
        return plain.get(text, text.removesuffix(" by the peer"))
    if result == "skip":
        return "-"
    return notes.mark({"wrong": "**WRONG**"}.get(result, result), text)


def table(head, columns, results, notes):
    lines = [head, "| system | " + " | ".join(columns) + " |",
             "|---" * (len(columns) + 1) + "|"]
    for name, found in results.items():
        outcomes = found["outcomes"]
        if not any(check in outcomes for check in columns.values()):
            continue
        cells = [cell(outcomes.get(check), notes) for check in columns.values()]
        lines.append(f"| {title(name, found)} | {' | '.join(cells)} |")
    return lines


def title(name, found):
    return f"{name.replace('_', ' ')} {found['version']}"


def grouped(names):
    """Names of types for a cell, with the groups of GROUPS under one name."""
    names = list(names)
    for group, members in GROUPS.items():
        if set(members) <= set(names):
            names[names.index(members[0])] = group
            names = [name for name in names if name not in members]
    return ", ".join(names) or "-"


def dtypes(results):
    lines = [DTYPES_HEAD]
    for name, found in results.items():
        groups, other = {"zero-copy": [], "copied by the peer": []}, []
        for check, (result, text) in found["outcomes"].items():
            dtype = check.removeprefix("dtype ")
            if check == "dtypes":
                other.append(f"sent and received: {text}")
            elif dtype != check and result == "ok" and text in groups:
                groups[text].append(dtype)
            elif dtype != check and result != "refused":
                other.append(f"{dtype} {text if result == 'ok' else f'{result}: {text}'}")
        if other or any(groups.values()):
            lines.append(f"| {title(name, found)} | {grouped(groups['zero-copy'])} | "
                         f"{grouped(groups['copied by the peer'])} | {'; '.join(other) or '-'} |")
    return lines


def more(results):
    """Checks that exist for one system only."""
    known = {*TO_US.values(), *TO_THEM.values(), "dtypes"}
    lines = [f"- **{title(name, found)}**, {check}: "
             f"{ {'wrong': 'WRONG: '}.get(said[0], '' if said[0] == 'ok' else said[0] + ': ') }"
             f"{said[1]}."
             for name, found in results.items() for check, said in found["outcomes"].items()
             if check not in known and not check.startswith("dtype ")]
    return ["\n## Checks of one framework\n", *lines] if lines else []


def data(results, date):
    """The data for results.json; `results` is {system: {version, outcomes, why}}."""
    machine = f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}"
    return {"date": str(date), "python": platform.python_version(), "machine": machine,
            "systems": results}


def as_json(found):
    """The text of results.json: the checks of one outcome together."""
    facts = ", ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items()
                      if name != "systems")
    systems = []
    for name, system in found["systems"].items():
        rest = {key: value for key, value in system.items() if key != "outcomes"}
        groups = {}
        for check, outcome in system.get("outcomes", {}).items():
            groups.setdefault(tuple(outcome), []).append(check)
        rows = ",\n".join(map(row, groups.items()))
        systems.append(f'  {json.dumps(name)}: {json.dumps(rest)[:-1]}, "outcomes": [\n{rows}]}}')
    return f'{{\n {facts},\n "systems": {{\n' + ",\n".join(systems) + "\n }\n}\n"


def row(group):
    """[outcome, checks], the checks as text in lines of at most 100 columns."""
    outcome, checks = group
    types = [check.removeprefix("dtype ") for check in checks if check.startswith("dtype ")]
    names = [check for check in checks if not check.startswith("dtype ")]
    text = "; ".join(names + ["types " + " ".join(types)] * bool(types))
    head, lines = f"   [{json.dumps(outcome)}, [", textwrap.wrap(text, 92, break_on_hyphens=False)
    if len(head) + len(text) < 96:
        return f'{head}"{text}"]]'
    return head + ",".join(f"\n     {json.dumps(line)}" for line in lines) + "]]"


def checks_of(lines):
    """The checks of a row."""
    for part in " ".join(lines).split("; "):
        word, _, types = part.partition(" ")
        yield from (f"dtype {name}" for name in types.split()) if word == "types" else [part]


def recorded():
    """The data of results.json, as `data` made it: outcomes are {check: [result, text]}."""
    found = json.loads(DATA.read_text())
    for system in found["systems"].values():
        system["outcomes"] = {check: outcome for outcome, lines in system["outcomes"]
                              for check in checks_of(lines)}
    return found


def page(found):
    """The page's text."""
    notes, results = Notes(), found["systems"]
    lines = [HEAD.format(**found)]
    missing = [f"| {name.replace('_', ' ')} | {system['why']} |"
               for name, system in results.items() if "why" in system]
    lines += table(TO_US_HEAD, TO_US, results, notes)
    lines += table(TO_THEM_HEAD, TO_THEM, results, notes)
    if missing:
        lines += ["\n## Not run\n", "| system | why |", "|---|---|", *missing]
    lines += dtypes(results)
    lines += more(results)
    lines += ["\n## Notes\n", *(f"{number}. {text.replace('|', ' ')}"
                                for number, text in enumerate(notes.texts, 1))]
    return "\n".join(lines) + "\n"


def main(options):
    text = page(recorded())
    if "--check" not in options:
        PAGE.write_text(text)
    elif PAGE.read_text() != text:
        print("FAIL  docs/interop.md is not what tests/interop/report.py makes of results.json")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
