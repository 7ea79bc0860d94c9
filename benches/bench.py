"""Times libdlpack_rs next to memcpy, NumPy, torch and others, and next to another build of itself.

    bench.sh                            all of it: benches/results/PROCESSOR.json, docs/benchmarks.md
    bench.sh --base dd98b55 --cpu       next to that commit, on a machine with other work
    bench.sh --parts copies --only llm  some rows of workload.txt: prints, writes target/bench

All contestants take turns in one process, on the same memory, which was touched before: what slows
the machine slows all of them. A figure is the best of many turns. Every result is compared with
NumPy's before it is timed. Nothing here is a test.
"""

import argparse
import contextlib
import datetime
import json
import math
import os
import platform
import random
import re
import subprocess
import sys
import time
from importlib import metadata
from itertools import repeat
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "target" / "bench"
PARTS = ("copies", "threads", "small", "python")
TURN = 2e-4  # seconds: faster copies are called several times per turn
LEAST = 3  # turns of each contestant
LONG = 0.05  # seconds a call


def arguments():
    parser = argparse.ArgumentParser(
        prog="bench.sh", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--base", metavar="COMMIT|FILE", help="another build, to be timed in turn")
    parser.add_argument("--cpu", action="store_true",
                        help="count the thread's processor time instead of the clock's, which\n"
                        "stays usable on a busy machine (several threads go by the clock)")
    parser.add_argument("--parts", metavar="PART,...", default=",".join(PARTS),
                        help=f"of {','.join(PARTS)}")
    parser.add_argument("--only", metavar="REGEX", default="",
                        help='rows whose "family title dtype shape" matches')
    parser.add_argument("--threads", metavar="N", type=int, default=2,
                        help="threads of the part with several (2)")
    parser.add_argument("--seconds", metavar="S", type=float, default=0.25,
                        help="for each contestant at each row (0.25)")
    parser.add_argument("--no-peers", action="store_true", help="memcpy and our builds alone")
    parser.add_argument("--level", metavar="NAME",
                        help="kernels of portable, neon, avx2, avx512 or vbmi, in a build for that")
    parser.add_argument("--machine", metavar="NAME", help="what to call this processor")
    parser.add_argument("--json", metavar="FILE", type=Path, help="where to write the figures")
    asked = parser.parse_args()
    asked.parts = asked.parts.split(",")
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    return asked


# ---- The builds --------------------------------------------------------------------------------

def build(tree, target, level):
    """The library of a source tree; with a level, built as in the tests of levels."""
    options = ["--features", "levels", "--target-dir", target / "levels"] if level else [
        "--target-dir", target]
    subprocess.run([os.environ.get("CARGO", "cargo"), "build", "--quiet", "--release", "--locked",
                    "-p", "dlpack_rs_cdylib", *options], check=True, cwd=tree)
    return (target / "levels" if level else target) / "release" / "libdlpack_rs.so"


def build_commit(commit, level):
    """The library of a commit of this repository, built in target/bench."""
    commit = git("rev-parse", "--short=7", commit)
    tree = BUILT / commit
    if not tree.exists():
        tree.mkdir(parents=True)
        files = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True,
                               capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", tree], input=files, check=True)
    return build(tree, tree / "target", level), commit


def git(*command):
    return subprocess.run(["git", *command], cwd=ROOT, check=True, capture_output=True,
                          text=True).stdout.strip()


def builds(asked):
    """The files of the libraries, and their descriptions: {"ours": file, "base": file}, texts."""
    ours = Path(os.environ.get("DLPACK_RS_LIBRARY", ROOT / "target/lib/libdlpack_rs.so"))
    if asked.level:
        ours = build(ROOT, ROOT / "target", asked.level)
    files = {"ours": ours}
    names = {"ours": git("rev-parse", "--short=7", "HEAD")}
    if git("status", "--porcelain", "src", "crates", "Cargo.toml"):
        names["ours"] += " and changes"
    if asked.base and Path(asked.base).is_file():
        files["base"], names["base"] = Path(asked.base), Path(asked.base).name
    elif asked.base:
        files["base"], names["base"] = build_commit(asked.base, asked.level)
    return files, names


# ---- The machine -------------------------------------------------------------------------------

def processor():
    """Its name and its instructions."""
    facts = {}
    if Path("/proc/cpuinfo").exists():
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            facts.setdefault(key.strip(), value.strip())
    name = facts.get("model name", platform.processor() or platform.machine())
    if "cpu family" in facts:
        name += f" (family {facts['cpu family']}, model {facts['model']})"
    return re.sub(r"\((R|TM)\)", "", name), set(facts.get("flags", "").split())


def level_of(flags):
    """The best level of kernels that the processor supports."""
    needs = {"vbmi": {"avx512f", "avx512bw", "avx512vl", "avx512_vbmi", "bmi2"},
             "avx512": {"avx512f", "avx512bw", "avx512vl", "bmi2"}, "avx2": {"avx2", "bmi2"}}
    flags = {"avx512_vbmi" if flag == "avx512vbmi" else flag for flag in flags}
    found = next((level for level, need in needs.items() if need <= flags), "portable")
    return "neon" if platform.machine() == "aarch64" else found


def caches():
    """The sizes in bytes of the first processor's data caches, from L1 on."""
    found = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")
    read = [{name: (index / name).read_text().strip() for name in ("level", "type", "size")}
            for index in found]
    return [int(cache["size"].rstrip("K")) << 10 for cache in
            sorted(read, key=lambda cache: cache["level"]) if cache["type"] != "Instruction"]


def first_line(*command):
    try:
        return subprocess.run(command, check=True, capture_output=True,
                              text=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def installed(*packages):
    """The installed packages, with their versions."""
    found = []
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{package} {metadata.version(package)}")
    return found


def facts(asked, names, peers):
    """What the figures depend on."""
    name, flags = processor()
    return {
        "processor": asked.machine or name, "level": asked.level or level_of(flags),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "clock": "thread" if asked.cpu else "wall", "processors": os.cpu_count(),
        "threads": asked.threads,
        "caches": caches(),
        "load": round(os.getloadavg()[0], 1), "system": " ".join(platform.libc_ver()),
        "libdlpack_rs": names["ours"], "base": names.get("base"),
        "compiler": first_line(os.environ.get("CARGO", "cargo"), "-V").split(" (")[0].replace(
            "cargo", "Rust") + ", " + first_line("cc", "--version"),
        "python": platform.python_version(),
        "peers": installed("NumPy", "torch", "apache-tvm-ffi") + peers,
    }


# ---- Timing ------------------------------------------------------------------------------------

def race(works, seconds, clock, calm=()):
    """The best seconds per call of each, in turns until each has had its `seconds`.

    The previous call's cache contents matter: the order changes with each turn, and a turn
    begins with an uncounted call, unless the copy takes so long that no cache holds its
    tensors. After a turn of a member of `calm` its threads get a moment to go to sleep.
    """
    best, spent = dict.fromkeys(works, math.inf), dict.fromkeys(works, 0.0)
    calls = dict.fromkeys(works, 1)
    order, shuffle, turn = list(works), random.Random(1).shuffle, 0
    while turn < LEAST or min(spent.values()) < seconds:
        shuffle(order)
        for name in order:
            work = works[name]
            if turn >= LEAST and spent[name] >= seconds:
                continue
            if best[name] < LONG or turn == 0:
                work()
            passed, start = time.perf_counter(), clock()
            for _ in repeat(None, calls[name]):
                work()
            took = clock() - start
            passed = time.perf_counter() - passed
            spent[name] += passed
            best[name] = min(best[name], took / calls[name])
            if turn < 2:  # the first turn of all has one call, which estimates its time
                calls[name] = max(1, int(TURN * calls[name] / max(passed, 1e-9)))
            if name in calm:
                time.sleep(0.004)
        turn += 1
    return best


def nanoseconds(best):
    """With four digits."""
    return {name: float(f"{seconds * 1e9:.4g}") for name, seconds in best.items()}


def checked(data, makers):
    """The contestants that support the row, each checked for a right result."""
    works = {}
    for name, make in makers.items():
        data.out.fill(1)
        if (work := make(data)) is None:
            continue
        work()
        if not name.startswith("memcpy") and not data.right():
            raise SystemExit(f"{data.row.name}: {name} differs from NumPy")
        works[name] = work
    return works


class Bench:
    """One run: each part gives the list of its rows."""

    def __init__(self, asked, files):
        import contestants
        import workload

        self.asked, self.files, self.who, self.workload = asked, files, contestants, workload
        self.clock = time.thread_time if asked.cpu else time.perf_counter
        self.libraries = {name: contestants.Library(file, asked.level)
                          for name, file in files.items()}
        self.peers = contestants.Peers()

    def rows(self, least=0, families=()):
        """The requested rows, with their memory."""
        for row in self.workload.rows():
            asked_for = re.search(self.asked.only, f"{row.family} {row.name}")
            if asked_for and (not families or row.family in families):
                data = self.workload.Data(row)
                if data.nbytes >= least:
                    yield data

    def result(self, data, makers, clock, calm=()):
        ns = nanoseconds(race(checked(data, makers), self.asked.seconds, clock, calm))
        row = {"family": data.row.family, "row": data.row.name, "bytes": data.nbytes, "ns": ns}
        words = "  ".join(f"{name} {ns[name] / ns['ours']:.2f}" for name in ns if name != "ours")
        print(f"  {data.row.family:8} {data.row.name:38} {data.nbytes / ns['ours']:6.1f} GB/s"
              f"  times: {words}", flush=True)
        return row

    def copies(self):
        """All rows, one thread each."""
        who = self.who
        makers = {"memcpy": who.memcpy}
        for name, library in self.libraries.items():
            makers[name] = lambda data, library=library: library.copier(data, 1)
        if not self.asked.no_peers:
            makers |= {"NumPy": who.of_numpy, "torch": who.of_torch, **self.peers.copiers}
        if who.torch:
            who.torch.set_num_threads(1)
        return [self.result(data, makers, self.clock) for data in self.rows()]

    def threads(self):
        """The large rows of two families by several threads each, by the clock."""
        who, several = self.who, self.asked.threads
        makers = {"memcpy": who.memcpy}
        if several == 2:
            makers["memcpy 2"] = lambda data: who.memcpy(data, 2)
        for name, library in self.libraries.items():
            for label, count in ((name, 1), (f"{name} {several}", several)):
                makers[label] = lambda data, library=library, n=count: library.copier(data, n)
        if who.torch and not self.asked.no_peers:
            who.torch.set_num_threads(several)
            makers[f"torch {several}"] = who.of_torch
        return [self.result(data, makers, time.perf_counter, calm=(f"torch {several}",))
                for data in self.rows(1 << 20, ("llm", "dense"))]

    def small(self):
        """The output of small.c."""
        program = self.who.in_c("small", "-ldl")
        clock = "cpu" if self.asked.cpu else "clock"
        text = subprocess.run([program, clock, str(40 * self.asked.seconds), *self.files.values()],
                              check=True, capture_output=True, text=True).stdout
        print(text, end="", flush=True)
        found = []
        for line in text.splitlines():
            name, yardstick, target, *ns = line.split("\t")
            ns = {who: float(figure) for who, figure in zip((yardstick, "ours", "base"), ns)
                  if figure != "-"}
            target = None if target == "-" else float(target)
            found.append({"row": name, "yardstick": yardstick, "target": target, "ns": ns})
        return found

    def python(self):
        """Calls from Python, and the duration of a process with the package."""
        import exchange

        names, found = exchange.names(), []
        for what, target, calls in exchange.ROWS:
            ns = nanoseconds(race(exchange.works(calls, names), self.asked.seconds, self.clock))
            found.append({"row": what, "target": target, "ns": ns})
            print(f"  {what:32} {ns}", flush=True)
        # Another process's time is not this thread's.
        ns = nanoseconds(race(exchange.processes(), 5 * self.asked.seconds, time.perf_counter))
        found.append({"row": "process that imports the package", "target": None, "ns": ns})
        print(f"  {found[-1]['row']:32} {ns}", flush=True)
        return found


def main():
    asked = arguments()
    files, names = builds(asked)
    os.environ["DLPACK_RS_LIBRARY"] = os.fspath(files["ours"])
    sys.path.insert(0, str(ROOT / "python"))
    bench, start = Bench(asked, files), time.perf_counter()
    found = {"machine": facts(asked, names, bench.peers.versions)}
    for part in asked.parts:
        print(f"{part}: after {time.perf_counter() - start:.0f} s", flush=True)
        found[part] = getattr(bench, part)()
    found["machine"]["seconds"] = round(time.perf_counter() - start)
    import page

    print("\n".join(page.summary(found)))
    whole = not asked.only and set(asked.parts) == set(PARTS) and not asked.no_peers
    folder = ROOT / "benches" / "results" if whole else BUILT
    file = asked.json or folder / f"{page.slug(found['machine'])}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page.as_json(found), encoding="utf-8")
    print(f"written: {file}")
    if whole and not asked.json:
        page.main([])


if __name__ == "__main__":
    main()
