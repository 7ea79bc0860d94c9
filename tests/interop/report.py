"""docs/interop.md: what the checks saw, one row per system."""

import platform

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
           "READ_ONLY": "import read-only", "our deleter": "import deleter", "exit": "exit"}

HEAD = """# Interoperation

What happened when tensors were exchanged with every system below, both ways, through this library.
Written by `make interop` on {date}: Python {python}, {machine}, no GPU. Each system runs in an
environment of its own, at the version named; `tests/interop/systems/` has a file for each, and
`tests/interop/checks.py` says what each column checks. Zero-copy is the equality of two addresses
and a write seen on the other side; deleters are counted. `.ci/run` does it all again and compares.

- **yes**: as it should be: no copy where there is memory, the right values, freed once.
- **copied**: the system made a copy of its own accord; the values are right.
- **refused**: an exception, our tensor unharmed and still freed once; the notes have the words.
- **fault**: the system takes the tensor and then shows wrong values, fails or dies. Not ours.
- **WRONG**: ours, and to be mended. **-**: the system has no such thing.
"""
TO_US_HEAD = """
## Theirs to ours

*protocol*: the version of what they export when asked for 1.3. *straight*: how `from_dlpack(x)` got
the tensor of the object itself. *and back*: given back to them, their own memory; refused where
their capsule is legacy, which cannot say that it may be written, and they ask for such a one back.
*copy=*: `copy=True` makes a copy, flagged so, `copy=False` none; of oneAPI's memory the producer
makes it, when we ask. *READ_ONLY*: their read-only data stays so.
"""
TO_THEM_HEAD = """
## Ours to theirs

*reversed*: negative strides. *broadcast*: stride 0. *byte_offset*: a tensor made with one,
which a Tensor folds into `data`; *raw offset*: one whose producer does not. *unaligned*: 4 bytes
past a multiple of 256.
*READ_ONLY*: whether they keep the flag; *ignored*: they write. *exit*: the process ends cleanly,
with tensors of both sides alive in it.
"""
DTYPES_HEAD = """
## Types

Each type goes there and back with eight elements of known bytes, which must be the same afterwards.
"""


class Notes:
    """Long words, told once and numbered."""

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
        plain = {"works": "yes", "zero-copy": "yes", "once": "yes", "clean": "yes", "kept": "yes"}
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


def dtypes(results):
    lines = [DTYPES_HEAD]
    for name, found in results.items():
        groups = {}
        for check, (result, text) in found["outcomes"].items():
            if check.startswith("dtype "):
                words = {"zero-copy": "the same memory", "copied by the peer": "copied"}
                word = words.get(text, text) if result == "ok" else result
                groups.setdefault(word, []).append(check.removeprefix("dtype "))
            elif check == "dtypes":
                groups["sent and received"] = [text]
        if groups:
            said = "; ".join(f"{word}: {', '.join(names)}" for word, names in groups.items())
            lines.append(f"- **{title(name, found)}**: {said}.")
    return lines


def more(results):
    """Checks that only one system has."""
    known = {*TO_US.values(), *TO_THEM.values(), "dtypes"}
    lines = [f"- **{title(name, found)}**, {check}: "
             f"{ {'wrong': 'WRONG: '}.get(said[0], '' if said[0] == 'ok' else said[0] + ': ') }"
             f"{said[1]}."
             for name, found in results.items() for check, said in found["outcomes"].items()
             if check not in known and not check.startswith("dtype ")]
    return ["\n## What only one of them has\n", *lines] if lines else []


def write_matrix(path, results, date):
    """Writes the page; `results` is {system: {version, outcomes, why}}."""
    notes = Notes()
    machine = f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}"
    lines = [HEAD.format(date=date, python=platform.python_version(), machine=machine)]
    missing = [f"| {name.replace('_', ' ')} | {found['why']} |"
               for name, found in results.items() if "why" in found]
    lines += table(TO_US_HEAD, TO_US, results, notes)
    lines += table(TO_THEM_HEAD, TO_THEM, results, notes)
    if missing:
        lines += ["\n## Not run\n", "| system | why |", "|---|---|", *missing]
    lines += dtypes(results)
    lines += more(results)
    lines += ["\n## Notes\n", *(f"{number}. {text.replace('|', ' ')}"
                                for number, text in enumerate(notes.texts, 1))]
    path.write_text("\n".join(lines) + "\n")
