#!/usr/bin/env python3
"""Tables of benches/results, for docs/benchmarks.md and docs/benchmarks-gpu.md.

    page.py            writes the figures in README.md and the means in docs/benchmarks.md;
                       `make bench` does so at its end
    page.py --check    fails where they differ from the data
    page.py TABLE      prints that one, for the site (docs/site/site.py)
"""

import json
import math
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIGURES = re.compile(r"(<!-- figures -->\n).*?( *<!-- /figures -->)", re.S)
PEERS = ("NumPy", "torch", "strided-perm", "HPTT", "transpose")
LARGE = 64 << 10  # bytes from which a single row is compared with the base
UNITS = {"malloc + free": "times malloc + free", "memcpy": "ns more than memcpy"}
# Relative speeds below which a row or the mean of a family is listed as missed.
TO_PEERS, TO_BASE, FAMILY_TO_BASE, SMALL_TO_BASE, GAIN = 0.95, 0.75, 0.95, 1.0, 0.9


# ---- Data --------------------------------------------------------------------------------------

def slug(machine):
    """The name of a machine's data file."""
    words = re.findall(r"[a-z0-9]+", f"{machine['processor']} {machine['level']}".lower())
    return "-".join(words)


def as_json(found):
    """The text of a data file: each row on a line."""
    parts = [f' "machine": {json.dumps(found["machine"], indent=2)}']
    for part in (part for part in found if part != "machine"):
        rows = ",\n".join(f"  {json.dumps(row)}" for row in found[part])
        parts.append(f' "{part}": [\n{rows}\n ]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def results(folder="benches/results"):
    """All data files of a folder, in the order of their names."""
    files = sorted((ROOT / folder).glob("*.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def title(found):
    return f"{found['machine']['processor']}, {found['machine']['level']}"


def times(row, name, ours="ours"):
    """Our speed relative to another; None where that was not measured."""
    return round(row["ns"][name] / row["ns"][ours], 4) if name in row["ns"] else None


def mean(ratios):
    """The geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def ratios(rows, name):
    return [ratio for row in rows if (ratio := times(row, name))]


def families(rows):
    """{family: its rows}."""
    found = {}
    for row in rows:
        found.setdefault(row["family"], []).append(row)
    return found


# ---- Text --------------------------------------------------------------------------------------

def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def spread(values):
    return f"{mean(values):.2f}, {min(values):.2f}" if values else "-"


def table(head, rows):
    """A table whose first column is text."""
    line = "| {} |".format
    bar = " | ".join(["---"] + ["--:"] * (len(head) - 1))
    return "\n".join(line(" | ".join(row)) for row in (head, [bar], *rows)) + "\n"


def size(nbytes):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.3g} {name}"
    return f"{nbytes} B"


def others(found):
    """All contestants with which a copy was compared."""
    present = {name for row in found.get("copies", ()) for name in row["ns"]}
    return [name for name in ("memcpy", *PEERS, "base") if name in present]


def summary(found):
    """Lines for the terminal: by family, geometric mean and minimum of our relative speed."""
    names, rows = others(found), families(found.get("copies", ()))
    lines = [f"{'mean, least':10}" + "".join(f"{name:>14}" for name in names)] if rows else []
    for family, own in rows.items():
        lines.append(f"{family:10}  " + "".join(f"{spread(ratios(own, name)):>14}"
                                              for name in names))
    return lines + [f"missed: {text}" for text in missed(found)]


def missed(found):
    """The missed targets, a line for each."""
    lines, several = [], found["machine"]["threads"]
    for family, rows in families(found.get("copies", ())).items():
        least = SMALL_TO_BASE if family == "small" else FAMILY_TO_BASE
        if (to_base := ratios(rows, "base")) and round(mean(to_base), 2) < least:
            lines.append(f"{family}: {mean(to_base):.2f} of the base in the mean, target {least}")
        for row in rows:
            limits = [(name, TO_PEERS) for name in ("NumPy", "torch")]
            limits += [("base", TO_BASE)] if row["bytes"] >= LARGE else []
            lines += [f"{row['row']}: {times(row, name):.2f} of {name}, target {least}"
                      for name, least in limits if round(times(row, name) or least, 2) < least]
    for row in found.get("threads", ()):
        ours, peer = f"ours {several}", f"torch {several}"
        if row["family"] == "llm" and round(times(row, peer, ours) or 1, 2) < TO_PEERS:
            lines.append(f"{row['row']}, {several} threads: {times(row, peer, ours):.2f} of torch, "
                         f"target {TO_PEERS}")
        gain = row["ns"]["ours"] / row["ns"][ours]
        least = GAIN * (times(row, "memcpy", "memcpy 2") if "memcpy 2" in row["ns"] else 1)
        if round(gain, 2) < round(least, 2):
            lines.append(f"{row['row']}: {gain:.2f} times as fast with {several} threads, "
                         f"target {least:.2f}")
    for row in found.get("small", ()):
        if row["target"] and cost(row) > row["target"]:
            lines.append(f"{row['row']}: {number(cost(row))} {UNITS[row['yardstick']]}, "
                         f"target {row['target']}")
    for row in found.get("python", ()):
        if row["target"] and (ratio := 1 / times(row, fastest(row))) > row["target"]:
            lines.append(f"{row['row']}: {ratio:.2f} times {fastest(row)}, target {row['target']}")
    return lines


def cost(row, who="ours"):
    """The cost of a call of small.c, in the unit of its target; None where it was not measured."""
    ns, yardstick = row["ns"].get(who), row["ns"][row["yardstick"]]
    if ns is None:
        return None
    return ns - yardstick if row["yardstick"] == "memcpy" else ns / yardstick


def fastest(row):
    """The fastest other contestant."""
    return min((name for name in row["ns"] if name != "ours"), key=row["ns"].get)


# ---- Tables ------------------------------------------------------------------------------------

def machines(data):
    facts = (
        ("date", lambda m: m["date"]), ("processors", lambda m: str(m["processors"])),
        ("caches of data", lambda m: ", ".join(map(size, m["caches"])) or "-"),
        ("kernels", lambda m: m["level"]), ("system", lambda m: m["system"]),
        ("libdlpack_rs", lambda m: m["libdlpack_rs"]), ("base", lambda m: m["base"] or "-"),
        ("compiler", lambda m: m["compiler"]), ("Python", lambda m: m["python"]),
        ("compared with", lambda m: ", ".join(m["peers"])),
        ("one thread is timed by", lambda m: {"wall": "the clock", "thread":
                                              "its processor time"}[m["clock"]]),
        ("load average before", lambda m: str(m["load"])),
        ("seconds in all", lambda m: str(m["seconds"])),
    )
    head = ["", *(found["machine"]["processor"] for found in data)]
    rows = [[name, *(value(found["machine"]) for found in data)] for name, value in facts]
    return table(head, rows)


def each(make, data):
    """One table for each machine, with its title."""
    return "".join(f"\n{title(found)}:\n\n{make(found)}" for found in data)


def by_family(found):
    names = others(found)
    rows = [[family, str(len(own)), *(spread(ratios(own, name)) for name in names)]
            for family, own in families(found["copies"]).items()]
    return table(["family", "rows", *names], rows)


def targets(found):
    return "".join(f"- {line}\n" for line in missed(found)) or "- nothing\n"


def threads(found):
    n = found["machine"]["threads"]
    names = [name for name in (f"torch {n}", f"base {n}")
             if any(name in row["ns"] for row in found["threads"])]
    rows = [[row["row"], number(times(row, "ours", f"ours {n}")),
             number(times(row, "memcpy", "memcpy 2") if "memcpy 2" in row["ns"] else None),
             *(number(times(row, name, f"ours {n}")) for name in names)]
            for row in found["threads"]]
    head = [f"{n} threads each", "our gain", "memcpy's gain", *(f"next to {name}" for name in names)]
    return table(head, rows)


def small(found):
    text = []
    for yardstick, unit in UNITS.items():
        rows = [row for row in found["small"] if row["yardstick"] == yardstick]
        lines = [[row["row"], number(row["ns"]["ours"], 1), number(cost(row)),
                  number(row["target"], 1), number(cost(row, "base"))] for row in rows]
        head = [f"{yardstick}: {rows[0]['ns'][yardstick]:.1f} ns", "ours, ns", unit, "target",
                "base's"]
        text.append(table(head, lines))
    return "\n".join(text)


def python(found):
    names = ("ours", "NumPy", "torch", "tvm-ffi")
    *calls, process = found["python"]
    rows = [[f"`{row['row']}`", *(number(row["ns"].get(name), 0) for name in names),
             number(1 / times(row, fastest(row))), number(row["target"], 1)] for row in calls]
    bare, ours = (process["ns"][who] / 1e6 for who in ("bare", "ours"))
    return (table(["call", *names, "ratio", "target"], rows)
            + f"\nAn interpreter that does nothing takes {bare:.1f} ms, one that imports the "
            f"package {ours:.1f} ms.\n")


def all_rows(found):
    names = others(found)
    rows = [[row["row"], size(row["bytes"]), number(row["bytes"] / row["ns"]["ours"], 1),
             *(number(times(row, name)) for name in names)] for row in found["copies"]]
    return table(["row", "output", "GB/s", *(f"next to {name}" for name in names)], rows)


def gpu_cases(data, wanted, peers):
    """The table of the cases with a prefix, and columns of each card."""
    cases = {row["case"]: row["target"] for found in data for row in found["rows"]
             if row["case"].startswith(wanted)}
    columns = [(found, name) for found in data for name in ("ours", "limit", *peers)
               if any(row.get(name) is not None for row in found["rows"])]

    def cell(found, case, name):
        row = next((row for row in found["rows"] if row["case"] == case), {})
        if name != "ours" or not row:
            return number(row.get(name))
        return number(row["ours"], 1) if row["unit"] == "GB/s" else f"{row['ours']:.2f} us"
    heads = {"ours": "GB/s", "limit": "of the limit"}
    head = ["case", "target", *(f"{found['machine']['card'].split()[1]}: {heads.get(name, name)}"
                                for found, name in columns)]
    rows = [[case.removeprefix("D2D "), number(target),
             *(cell(found, case, name) for found, name in columns)]
            for case, target in cases.items()]
    return table(head, rows)


def cards(data):
    return table(["card", "driver for", "date"],
                 [[found["machine"][name] for name in ("card", "driver", "date")] for found in data])


CPU_TABLES = {"targets": targets, "threads": threads, "small": small, "python": python,
              "rows": all_rows}
GPU_TABLES = {
    "cards": cards, "transfers": lambda data: gpu_cases(data, ("H2D", "D2H"), ()),
    "on-device": lambda data: gpu_cases(data, ("D2D",), ("torch", "CuPy", "CCCL")),
}


def named(name):
    """The table of that name."""
    if name in GPU_TABLES:
        return GPU_TABLES[name](results("benches/results/gpu"))
    return machines(results()) if name == "machines" else each(CPU_TABLES[name], results())


def figures(data):
    """The figures in README.md: over all machines, or as a range from the least to the greatest."""
    whole = [[row for row in found["copies"] if row["family"] != "packed"] for found in data]

    def over(name):
        means = [mean(known) for rows in whole if (known := ratios(rows, name))]
        low, high = f"{min(means):.1f}", f"{max(means):.1f}"
        return low if low == high else f"{low} to {high}"
    return (f"  Speed on {len(whole[0])} copies that frameworks really make, one thread, geometric "
            f"mean: {over('memcpy')} of memcpy's,\n  {over('NumPy')} times NumPy's, "
            f"{over('torch')} times torch's ([benchmarks](docs/benchmarks.md)).\n")


def main(options):
    if options and options != ["--check"]:
        print(named(options[0]).strip("\n"))
        return 0
    data, wrong = results(), 0
    for name, text in (("README.md", figures(data)), ("docs/benchmarks.md", each(by_family, data) + "\n")):
        file = ROOT / name
        before = file.read_text(encoding="utf-8")
        after = FIGURES.sub(lambda found: found[1] + text + found[2], before)
        if not options:
            file.write_text(after, encoding="utf-8")
        elif after != before or not FIGURES.search(before):
            print(f"FAIL  {name} is not what benches/page.py makes of benches/results")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
