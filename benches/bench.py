"""libdlpack_rs next to memcpy, NumPy, torch, jax and others: prints tables, writes Markdown, plots.

    bench.sh                        the full run, about 4 minutes; writes docs/
    bench.sh --quick                at most a minute; writes target/bench/
    bench.sh --only table,small     some sections: table, edges, threads, curves, random,
                                    views, caches, small

In one run, interleaved: every round times each competitor once, and a ratio is the median of the
ratios of single rounds, so that what slows the machine slows all. Nothing here is a test.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import cases
import engines
import peers
import report
from measure import measure

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20
EVERYBODY = ("memcpy", "limit", "ours 1", "ours 2", "NumPy", "torch 1", "torch 2", *peers.NAMES,
             "jax")


class Run:
    """What was asked for, and the memory that all cases share."""

    def __init__(self, quick, minutes, align):
        self.quick = quick
        self.minutes, self.started, self.due = minutes, time.time(), 0.0
        self.most = (64 if quick else 1024) * MIB
        self.memory = engines.Memory(max(self.most, 320 * MIB), align)
        self.rng = np.random.default_rng(20261120)

    def section(self, name):
        """Measures one; it has to end after its part of the time."""
        self.due = self.started + 60 * self.minutes * SECTIONS[name]
        print(f"{name}: {time.time() - self.started:.0f} s", flush=True)
        return getattr(self, name)()

    def facts(self, command):
        """What the report says about the run as a whole."""
        places = (engines.alignment(self.memory.source), engines.alignment(self.memory.target))
        return {"command": f"`{command}`", "took": f"{time.time() - self.started:.0f} s",
                "addresses are multiples of": "source {}, output {}".format(*places)}

    def late(self):
        return time.time() > self.due

    def one(self, case, names, budget):
        """Checks and times one case; only just, where time is short."""
        prepare = (engines.bit_engines if isinstance(case, cases.BitCase)
                   else engines.engines_of)
        found, nbytes = prepare(case, self.memory, names)
        least = 1 if self.quick or self.late() else 3
        budget = budget / 5 if self.late() else budget
        result = measure(case.name, found, nbytes, budget, least)
        result.target = case.target
        return result

    def table(self):
        budget, names = (0.3, EVERYBODY[:-1]) if self.quick else (2.5, EVERYBODY)
        return [told(self.one(case, names, budget)) for case in cases.TABLE + cases.BITS]

    def edges(self):
        budget, rows = (0.2, cases.EDGES[:4]) if self.quick else (1.5, cases.EDGES)
        return [told(self.one(case, EVERYBODY[:-1], budget)) for case in rows]

    def threads(self):
        """One thread and two, from 1 MiB up."""
        names, results = ("ours 1", "ours 2", "memcpy", "memcpy 2"), []
        for make in (cases.dense, cases.turned):
            for size in (4, 16, 64) if self.quick else (1, 4, 16, 64, 256):
                case = make(size * MIB)
                result = self.one(case, names, 0.2 if self.quick else 2.0)
                result.size, result.name = size, case.name
                results.append(told(result, "ours 1"))
        return results

    def curves(self):
        """Speed by size: {case: [(bytes, result)]}."""
        names = ("memcpy", "limit", "ours 1", "NumPy", "torch 1")
        sizes = [1 << power for power in range(10, 31, 3 if self.quick else 1)]
        results = {}
        for make in (cases.dense, cases.turned):
            for size in (size for size in sizes if size <= self.most):
                case = make(size)
                result = self.one(case, names, 0.1 if self.quick else 0.6)
                results.setdefault(case.name, []).append((size, result))
            print(f"  {case.name}: {len(results[case.name])} sizes", flush=True)
        return results

    def random(self):
        """Random permutations of the axes."""
        return self.many(cases.random_permutation, 1000, "permutations")

    def views(self):
        """Random views."""
        return self.many(cases.random_view, 1000, "views")

    def many(self, make, count, what):
        """Random cases that `make` gives."""
        names, results = ("memcpy", "ours 1", "NumPy"), []
        for place in range(40 if self.quick else count):
            if self.late() and place >= 40:
                break
            results.append(self.one(make(self.rng), names, 0.03))
            if (place + 1) % 200 == 0:
                print(f"  {place + 1} {what}", flush=True)
        return results

    def caches(self):
        """What caches.c prints: bytes of an element, bytes, and ns of ours, loops and memcpy."""
        return [tuple(map(float, line.split())) for line in
                in_c("caches", "-O3", "-march=native", count=100 if self.quick else 1000)]

    def small(self):
        """What small.c prints: rows of operation, ns, ratio, target."""
        return [(line[:44].strip(), *map(float, line[44:].split()))
                for line in in_c("small", "-O2", "-pthread")[1:]]


def in_c(name, *options, count=""):
    """The lines that a program of this folder prints."""
    program = ROOT / "target" / "bench" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    library = ROOT / "target" / "lib"
    subprocess.run(["cc", *options, "-I", ROOT / "include", ROOT / "benches" / f"{name}.c", "-o",
                    program, "-L", library, "-ldlpack_rs", "-lm", f"-Wl,-rpath,{library}"],
                   check=True)
    run = subprocess.run([program, str(count)] if count else [program], check=True,
                         capture_output=True, text=True)
    return run.stdout.splitlines()


def told(result, base="memcpy"):
    """Says how it went, while it goes."""
    shares = {name: result.ratio(name, base) for name in EVERYBODY if name != base}
    words = "  ".join(f"{name} {share:.2f}" for name, share in shares.items() if share)
    speed = result.speed(base) / 1e9
    print(f"  {result.name:38} {base} {speed:.1f} GB/s, share of it: {words}", flush=True)
    return result


# When each is to end, as a part of the whole time.
SECTIONS = {"table": 0.36, "edges": 0.46, "threads": 0.54, "curves": 0.72, "random": 0.86,
            "views": 0.98, "caches": 0.99, "small": 1.0}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="at most a minute; target/bench")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, with commas between")
    parser.add_argument("--minutes", type=float, help="how long, about; 8, or 1 with --quick")
    parser.add_argument("--align", type=int, default=0,
                        help="align the arrays, as torch does to 64; NumPy's are to 16")
    parser.add_argument("--out", type=Path, help="folder for benchmarks.md and the plots")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",")
    if unknown := set(wanted) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    whole = not arguments.quick and set(wanted) == set(SECTIONS)
    out = arguments.out or ROOT / ("docs" if whole else "target/bench")
    out.mkdir(parents=True, exist_ok=True)
    minutes = arguments.minutes or (1 if arguments.quick else 8)
    run = Run(arguments.quick, minutes, arguments.align)
    command, found, text = " ".join(["benches/bench.sh", *sys.argv[1:]]), {}, ""
    for section in SECTIONS:
        if section in wanted:
            found[section] = run.section(section)
            text = report.write(out, found, run.facts(command))
    print("\n" + text + f"\nwritten to {out}")


if __name__ == "__main__":
    main()
