#!/usr/bin/env python3
"""Plants one fault at a time: which step of the tests finds it?

    faults.py [--shipped] [--check | --part] [--again] [--but STEP] [--sample N] [--report]
              [WORD...]
    faults.py --plant TREE SENTENCE
    faults.py --places

tests/faults/faults.txt has the faults, each a sentence and the lines that it changes, which have to
be in the crate exactly once. Each is planted in a copy of the committed files and built; one that
cannot be planted, or does not build, ends the run. Then run the steps of `make check`, and those of
`make test`, until one fails; it has to pass without a fault. WORDs select faults by their sentence
or crate.

--check: only the steps of `make check`; --part: of `make test`, only the part that is likely to
find a fault of that crate (PARTS), in minutes rather than hours; --but: without the steps that
match. What these do not find is "open". The library is built without link-time optimization, and
steps that judge the file are left out, but with --shipped. Faults that have another result than
"open" are left out without --again; --sample draws N of all at random, the same ones each time. The
results are kept in tests/faults/results.txt; --report prints the rates of all of them, and runs
nothing; --plant only plants one, in TREE, and prints the file; --places only looks whether each can
be planted here (tests/lint.sh). The last line is `N passed, N
failed`: found, and missed by all of `make test`.
"""

import argparse
import datetime
import fcntl
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAULTS, RESULTS = ROOT / "tests/faults/faults.txt", ROOT / "tests/faults/results.txt"
TREE = ROOT / "target/faults"
SECONDS = int(os.environ.get("STEP_SECONDS", "1200"))
# Without link-time optimization the prebuilt `core` names what only unwinding would call.
FAST = {**{f"CARGO_PROFILE_RELEASE_{name}": value for name, value in
           {"LTO": "off", "INCREMENTAL": "true", "CODEGEN_UNITS": "16", "OPT_LEVEL": "1"}.items()},
        "RUSTFLAGS": "-Clink-arg=-Wl,--defsym=rust_eh_personality=0"}
# Steps that judge the library's file as it is shipped, or build another; and the sources' form.
OF_THE_FILE = ("laws.sh", "static/run.sh", "features/run.sh", "cargo fmt", "lint.sh", "wheel.sh")
C = ("ONLY=\"catalogue sweep threads $(cd c_tests && echo test_*.c | sed 's/\\.c//g')\" "
     "NO_VALGRIND=1 NO_LAWS=1 c_tests/run.sh target/include/dlpack target/lib")
PYTHON = "tests/python/run.sh target/lib/libdlpack_rs.so -x -k 'not every_python and not typing'"
GPU = "NO_VALGRIND=1 FAULTS_STEP=29 c_tests/gpu/run.sh target/include/dlpack target/lib"
# What of `make test` is likely to find a fault there, in minutes.
PARTS = {"crates/gpu": [GPU], "crates/device": [GPU, C], "crates/python": [PYTHON, C],
         "python/module": [PYTHON], "crates/kernels": ["cargo test --locked -p dlpack_kernels",
                                                       "cargo test --locked --test engine"],
         "crates/engine": [C, "cargo test --locked --test engine"],
         "crates/tensor": [C, "tests/tsan.sh", GPU, PYTHON]}
ANY = [C, "cargo test --locked --no-fail-fast --lib --test views --test pieces", PYTHON]


GOALS = ("check", "test", "open", "missed", "not run")


class Fault:
    def __init__(self, crate, sentence):
        self.crate, self.sentence, self.edits = crate, sentence, []

    def places(self, tree):
        """(file, span, new text) of each edit; a text where one is not there exactly once."""
        found = []
        for old, new in self.edits:
            parts = [re.escape(line) for line in old]
            pattern = re.compile("^([ \t]*)([^\n]*?)" + r"\n[ \t]*".join(parts), re.M)
            files = [path for path in sorted((tree / self.crate).rglob("*"))
                     if path.suffix in (".rs", ".py") and path.is_file()]
            hits = [(path, hit) for path in files for hit in pattern.finditer(path.read_text())]
            if len(hits) != 1:
                return f"{self.sentence}: {len(hits)} times in {self.crate}: {' / '.join(old)}"
            path, hit = hits[0]
            found.append((path, hit.span(), hit[1] + hit[2] + f"\n{hit[1]}".join(new)))
        return found

    def plant(self, tree):
        """The files that were changed."""
        found = self.places(tree)
        if isinstance(found, str):
            sys.exit(found)
        for path, (start, end), new in sorted(found, key=lambda edit: edit[1], reverse=True):
            text = path.read_text()
            path.write_text(text[:start] + new + text[end:])
        return [path.relative_to(tree) for path, _, _ in found]


def faults():
    """Of lines "[crate]", sentences, each with "- OLD" and "+ NEW" of one or more edits."""
    crate, found = None, []
    for line in FAULTS.read_text().splitlines():
        if line.startswith("["):
            crate = line.strip("[]")
        elif line.startswith("- "):
            if not found[-1].edits or found[-1].edits[-1][1]:
                found[-1].edits.append(([], []))
            found[-1].edits[-1][0].append(line[2:])
        elif line.startswith("+"):
            found[-1].edits[-1][1].append(line[2:])
        elif line and not line.startswith("#"):
            found.append(Fault(crate, line))
    return found


def run(command, environment=None):
    """Status, the end of the output; 124 after the time limit, which ends all child processes."""
    child = subprocess.Popen(["bash", "-c", command], cwd=TREE, stdin=subprocess.DEVNULL,
                             env=environment, start_new_session=True, text=True, errors="replace",
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        output, _ = child.communicate(timeout=SECONDS)
        return child.returncode, output
    except subprocess.TimeoutExpired:
        return 124, "too long"
    finally:
        if child.returncode is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()


def steps(goal):
    """The steps of a goal of the Makefile."""
    said = subprocess.check_output(["make", "-n", goal], cwd=ROOT, text=True)
    return shlex.split(said.rsplit("tests/steps.py", 1)[1])


def short(command):
    return re.search(r"cargo \w+|[\w/]+\.(?:sh|py)", command)[0]


def results():
    """By sentence: date, commit, goal and step that found it (or -), steps that did not."""
    if not RESULTS.exists():
        return {}
    rows = (line.split("\t") for line in RESULTS.read_text().splitlines() if line[:1] != "#")
    return {row[0]: row[1:] for row in rows}


def keep(known, listed):
    head = "# sentence, date, commit, found by (goal: step), steps that did not find it\n"
    rows = ("\t".join([fault.sentence, *known[fault.sentence]]) + "\n" for fault in listed
            if fault.sentence in known)
    RESULTS.write_text(head + "".join(rows))


def report(known, listed):
    """The table by crate; how many were found, and missed by all steps."""
    rows = {}
    for fault in listed:
        goal = known.get(fault.sentence, ["", "", "not run"])[2].split(":")[0]
        for name in (fault.crate, "all"):
            rows.setdefault(name, dict.fromkeys(GOALS, 0))[goal] += 1
    rows["all"] = rows.pop("all")
    print(f"{'':16}" + "".join(f"{goal:>8}" for goal in GOALS))
    for name, row in rows.items():
        print(f"{name:16}" + "".join(f"{count:8}" for count in row.values()))
    every = rows["all"]
    ran = sum(every.values()) - every["not run"]
    if ran:
        print(f"of {ran} that were run: {every['check'] / ran:.0%} found by make check, "
              f"{(every['check'] + every['test']) / ran:.0%} by make test, "
              f"{every['open'] / ran:.0%} open")
    print(f"{every['check'] + every['test']} passed, {every['missed']} failed")
    return every["missed"]


def misplaced(listed, tree):
    """What cannot be planted in a tree, or None."""
    bad = [places for fault in listed if isinstance(places := fault.places(tree), str)]
    if bad or len({fault.sentence for fault in listed}) < len(listed):
        return "\n".join(["these cannot be planted, or are there twice:", *bad])
    return None


def main():
    parse = argparse.ArgumentParser(usage=__doc__)
    for name in ("shipped", "check", "part", "again", "report", "places"):
        parse.add_argument(f"--{name}", action="store_true")
    parse.add_argument("--plant", type=Path)
    parse.add_argument("--sample", type=int)
    parse.add_argument("--but", default="no step")
    parse.add_argument("words", nargs="*")
    asked = parse.parse_args()
    known, listed = results(), faults()
    if asked.report:
        sys.exit(report(known, listed) > 0)
    if asked.places:
        sys.exit(misplaced(listed, ROOT))
    if asked.plant:
        fault = next(fault for fault in listed if fault.sentence == " ".join(asked.words))
        print(*fault.plant(asked.plant))
        sys.exit()
    os.nice(5)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not (TREE / ".git").exists():
        subprocess.run(["git", "clone", "-q", ROOT, TREE], check=True)
    lock = (TREE / ".git/faults.lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # one run at a time
    # As committed here, which a former run may not have had; what was built stays.
    clean = "git checkout -q . && git clean -qfd"
    if run(f"git fetch -q && git checkout -q --detach {commit('HEAD')} && {clean}")[0]:
        sys.exit(f"{TREE}: cannot check out the commit")
    if bad := misplaced(listed, TREE):
        sys.exit(bad)
    environment = {**os.environ, **({} if asked.shipped else FAST)}
    # One environment of Python for all; and what a compiler made once of an unchanged file.
    environment.setdefault("VENV", str(ROOT / "target/venv"))
    if ccache := shutil.which("ccache"):
        wrappers = Path(ccache).parent.parent / "lib/ccache"
        environment |= {"PATH": f"{wrappers}:{os.environ['PATH']}", "CCACHE_NOHASHDIR": "1"}

    def wanted(command):
        left_out = [asked.but, *(OF_THE_FILE if not asked.shipped else ())]
        return not any(re.search(word, command) for word in left_out)

    def stages(fault):
        """Those of `make check`, the quickest first; of `make test`."""
        for step in sorted(steps("check"), key=lambda step: "cargo test" in step):
            yield "check", step
        if not asked.check:
            for step in PARTS.get(fault.crate, ANY) if asked.part else steps("test"):
                yield "test", step

    def build():
        status, said = run("make build SETUP=no", environment)
        if status:
            sys.exit(f"{said[-3000:]}\n{fault.sentence}: does not build")

    def without_fault(step):
        """Ends the run where the step fails without a fault, too."""
        if step not in proven:
            build()
            status, said = run(step, environment)
            if status:
                sys.exit(f"{said[-3000:]}\nwithout a fault this fails: {step}")
            proven.add(step)

    def skipped(fault):
        before = known.get(fault.sentence)
        return before and not asked.again and (asked.check or before[2] != "open")

    proven = set()
    chosen = [fault for fault in listed if not skipped(fault)
              and all(word in f"{fault.crate} {fault.sentence}" for word in asked.words)]
    if asked.sample:
        drawn = random.Random(1).sample(listed, asked.sample)
        chosen = [fault for fault in drawn if fault in chosen]
    for number, fault in enumerate(chosen, 1):
        began, passed, by = time.monotonic(), [], ""
        fault.plant(TREE)
        build()
        for goal, step in stages(fault):
            if not wanted(step):
                continue
            if run(step, environment)[0]:
                by = f"{goal}: {short(step)}"
                break
            passed.append(short(step))
        run(clean)
        if by:
            without_fault(step)
        by = by or ("open" if asked.check or asked.part else "missed")
        known[fault.sentence] = [datetime.date.today().isoformat(), commit("--short=8", "HEAD"), by,
                                 ", ".join(dict.fromkeys(passed)) or "-"]
        keep(known, listed)
        print(f"{number}/{len(chosen)} {by}  {fault.crate}: {fault.sentence} "
              f"({time.monotonic() - began:.0f} s)", flush=True)
    sys.exit(report(known, listed) > 0)


def commit(*words):
    return subprocess.check_output(["git", "rev-parse", *words], cwd=ROOT, text=True).strip()


main()
