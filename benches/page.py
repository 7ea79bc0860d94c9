#!/usr/bin/env python3
"""Writes docs/benchmarks.md, and the figures in README.md, from benches/results/*.json, and
docs/benchmarks-gpu.md from benches/results/gpu/*.json.

    page.py            writes them; `make bench` does so at its end
    page.py --check    fails where they differ from the data
"""

import json
import math
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE, README = ROOT / "docs" / "benchmarks.md", ROOT / "README.md"
GPU_PAGE = ROOT / "docs" / "benchmarks-gpu.md"
FIGURES = re.compile(r"(<!-- figures -->\n).*?( *<!-- /figures -->)", re.S)
PEERS = ("NumPy", "torch", "strided-perm", "HPTT", "transpose")
LARGE = 64 << 10  # bytes from which a single row is compared with the base
UNITS = {"malloc + free": "times malloc + free", "memcpy": "ns more than memcpy"}
# Relative speeds below which a row or the mean of a family is listed as missed.
TO_PEERS, TO_BASE, FAMILY_TO_BASE, SMALL_TO_BASE, GAIN = 0.95, 0.75, 0.95, 1.0, 0.9

INTRODUCTION = """# Benchmarks

Written by `make bench` from the data in [benches/results](../benches/results); do not edit. There
is one data file for each processor and level of kernels. GPUs are on
[another page](benchmarks-gpu.md).

The rows are copies that frameworks make: [benches/workload.txt](../benches/workload.txt). Each
copies a view of a compact array into a compact array that was touched before. All contestants take
turns in one process on the same memory, called from Python, and each figure is the best of many
turns. Results are compared with NumPy's first. Small copies of ours and memcpy include some 150 ns of ctypes.

Speeds are relative to the one that is named: 2.00 is twice as fast, 0.50 half as fast. memcpy
copies as many bytes as the output has. "Base" is another build of this library. "-" means not
measured or not supported.
"""

GPU_INTRODUCTION = """# Benchmarks on GPUs

Written by `make bench-cuda` and `make bench-rocm` from the data in
[benches/results/gpu](../benches/results/gpu); do not edit. Medians of repeats.

The limit is `cuMemcpyAsync` or `hipMemcpyAsync` of as many bytes between the same kinds of memory,
in the same run: 1.00 is as fast, and "target" is the fraction that we aim for. "torch 2.00" means that torch takes
twice as long as this library. "-" means not measured.
"""


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


# ---- The page ----------------------------------------------------------------------------------

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
    return "## Machines\n\n" + table(head, rows)


def by_family(data):
    text = ("## Copies by family, one thread\n\nRelative speed: geometric mean and minimum of each "
            "family. Elements of \"packed\" have\n4 or 6 bits, which no peer copies.\n")
    for found in data:
        names = others(found)
        rows = [[family, str(len(own)), *(spread(ratios(own, name)) for name in names)]
                for family, own in families(found["copies"]).items()]
        text += f"\n{title(found)}:\n\n" + table(["family", "rows", *names], rows)
    return text


def targets(data):
    text = (f"## What falls short\n\nRows that miss a target. Targets: {TO_PEERS} of NumPy's and "
            f"torch's speed on one thread, and of torch's\nwith as many threads in the family "
            f"\"llm\"; a second thread gains {GAIN} of what memcpy gains; relative to\nthe base, families "
            f"{FAMILY_TO_BASE} (small {SMALL_TO_BASE}) and rows of 64 KiB and more {TO_BASE}; and "
            f"the targets below.\n")
    for found in data:
        lines = "".join(f"- {line}\n" for line in missed(found)) or "- nothing\n"
        text += f"\n{title(found)}:\n\n{lines}"
    return text


def threads(data):
    text = ("## Several threads\n\nWall-clock time. \"Gain\" is the speed with several threads "
            "relative to one. memcpy with two threads\ncreates and joins one of them, as a copy "
            "does. Other work on the machine affects these figures most.\n")
    for found in data:
        n = found["machine"]["threads"]
        names = [name for name in (f"torch {n}", f"base {n}")
                 if any(name in row["ns"] for row in found["threads"])]
        rows = [[row["row"], number(times(row, "ours", f"ours {n}")),
                 number(times(row, "memcpy", "memcpy 2") if "memcpy 2" in row["ns"] else None),
                 *(number(times(row, name, f"ours {n}")) for name in names)]
                for row in found["threads"]]
        head = [f"{n} threads each", "our gain", "memcpy's gain", *(f"next to {name}"
                                                                  for name in names)]
        text += f"\n{title(found)}:\n\n" + table(head, rows)
    return text


def small(data):
    text = ("## Small tensors\n\nCalls through the C ABI, including the release of new tensors. "
            "The copies have 48 to 192 bytes; beyond\nmemcpy they validate and choose an op.\n")
    for found in data:
        for yardstick, unit in UNITS.items():
            rows = [row for row in found["small"] if row["yardstick"] == yardstick]
            lines = [[row["row"], number(row["ns"]["ours"], 1), number(cost(row)),
                      number(row["target"], 1), number(cost(row, "base"))] for row in rows]
            head = [f"{yardstick}: {rows[0]['ns'][yardstick]:.1f} ns", "ours, ns", unit, "target",
                    "base's"]
            text += f"\n{title(found)}:\n\n" + table(head, lines)
    return text


def python(data):
    names = ("ours", "NumPy", "torch", "tvm-ffi")
    text = ("## Exchange in Python\n\nNanoseconds a call, float32 of 3 x 4 on the CPU: the call "
            "from Python and the release of the\nresult. The ratio is to the fastest other one.\n")
    for found in data:
        *calls, process = found["python"]
        rows = [[f"`{row['row']}`", *(number(row["ns"].get(name), 0) for name in names),
                 number(1 / times(row, fastest(row))), number(row["target"], 1)] for row in calls]
        bare, ours = (process["ns"][who] / 1e6 for who in ("bare", "ours"))
        text += (f"\n{title(found)}:\n\n" + table(["call", *names, "ratio", "target"], rows)
                 + f"\nAn interpreter that does nothing takes {bare:.1f} ms, one that imports the "
                 f"package {ours:.1f} ms.\n")
    return text


def all_rows(data):
    text = "## All rows\n\nOne thread. GB/s are of the output.\n"
    for found in data:
        names = others(found)
        rows = [[row["row"], size(row["bytes"]), number(row["bytes"] / row["ns"]["ours"], 1),
                 *(number(times(row, name)) for name in names)] for row in found["copies"]]
        head = ["row", "output", "GB/s", *(f"next to {name}" for name in names)]
        text += f"\n{title(found)}:\n\n" + table(head, rows)
    return text


def page(data):
    sections = (machines, by_family, targets, threads, small, python, all_rows)
    return "\n".join([INTRODUCTION, *(section(data) for section in sections)])


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


def gpu_page(data):
    head = ["card", "driver for", "date"]
    cards = [[found["machine"][name] for name in ("card", "driver", "date")] for found in data]
    return "\n".join([
        GPU_INTRODUCTION, table(head, cards),
        "## Between host and device\n\nH2D: host to device, D2H: device to host. Wall-clock time "
        "from call to return.\n", gpu_cases(data, ("H2D", "D2H"), ()),
        "## On the device\n\nTimed by the device's events; bytes read and written are counted.\n",
        gpu_cases(data, ("D2D",), ("torch", "CuPy", "CCCL"))])


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
    data = results()
    readme = README.read_text(encoding="utf-8")
    texts = {PAGE: page(data), GPU_PAGE: gpu_page(results("benches/results/gpu")),
             README: FIGURES.sub(lambda found: found[1] + figures(data) + found[2], readme)}
    stale = [file for file, text in texts.items()
             if not file.exists() or file.read_text(encoding="utf-8") != text]
    for file in stale:
        name = file.relative_to(ROOT)
        if "--check" in options:
            print(f"FAIL  {name} is not what benches/page.py makes of benches/results")
        else:
            file.write_text(texts[file], encoding="utf-8")
            print(f"written: {name}")
    return 1 if "--check" in options and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
