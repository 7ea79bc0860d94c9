#!/usr/bin/env python3
"""Mutation testing: the code is changed in one place at a time; a test must fail.

    mutants.py [--engine] [--share K/N] [--shuffle SEED] [--minutes M] [--jobs J] [--file GLOB ...]
               [--again LOG]

cargo-mutants lists the changes. Each change is built into a shared library (fast, not as it is
shipped) in a copy of the tree, and the C test programs run against it, at most TIME_MOST seconds
each; if they pass, the Rust tests run. With `--engine` the copy engine is changed, and its tests
run. `--share K/N` takes every N-th change, from the K-th on, `--shuffle` after a random reordering;
`--again LOG` those that a former run lists as missed; after M minutes no further one is started.
One line for each undetected change, unless mutants.txt has it, with the reason why no caller can
observe it; the last line is `N passed, N failed`. A line of mutants.txt that is no longer a change
of the code ends the run before it begins.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import queue
import random
import re
import shutil
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "mutants"
# The code that decides what a tensor is, its owner and permitted copies. Devices and Python have
# separate oracles, and so has the engine.
CORE = (*("crates/core/src/" + name for name in ("validate*", "layout.rs", "overlap*", "dtype*.rs",
                                                 "device_type.rs", "view*")),
        *("crates/tensor/src/" + name for name in ("import.rs", "tensor/*.rs", "copy/pair.rs",
                                                   "copy/one.rs")),
        "crates/engine/src/pieces.rs")
ENGINE = ("crates/engine/src/nest.rs", "crates/engine/src/plan.rs", "crates/engine/src/cpu/*.rs",
          "crates/kernels/src/*.rs")
HOST = re.search("^host: (.*)$", subprocess.check_output(["rustc", "-vV"], text=True), re.M)[1]
TIME_MOST = 60
# Those that detect fastest first.
FIRST = ("catalogue", "test_validate", "test_view", "test_names", "test_share")
# Frames are small in the library that is shipped, not in this one.
LEFT_OUT = {"test_engine"}
# Of tests/engine, those that detect most; then all of it.
ENGINE_FIRST = ("random_bytes", "random_bits", "differential", "parallel")
RUST_TESTS = ("overlap", "views", "plain", "names", "saturation", "fuzz_seeds")
PROFILE = {"LTO": "off", "INCREMENTAL": "true", "CODEGEN_UNITS": "16"}
# Without link-time optimization the prebuilt `core` names what only unwinding would call.
FLAGS = "-Clink-arg=-Wl,--defsym=rust_eh_personality=0"


def run(arguments, folder, environment=None, seconds=None):
    """Status and output; 124 after the time limit, which ends all child processes."""
    made = subprocess.Popen(arguments, cwd=folder, env=environment, start_new_session=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            errors="replace")
    try:
        output, _ = made.communicate(timeout=seconds)
        return made.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(made.pid, 9)
        made.communicate()
        return 124, ""


class Tree:
    """A copy of the committed files, built and tested separately."""

    def __init__(self, number, engine):
        self.engine = engine
        self.top = WORK / f"tree{number}"
        self.tests = WORK / f"tests{number}"
        shutil.rmtree(self.top, ignore_errors=True)
        self.tests.mkdir(parents=True, exist_ok=True)
        (self.tests / "lib").mkdir(exist_ok=True)
        subprocess.run(["git", "clone", "-q", ROOT, self.top], check=True)
        release = {f"CARGO_PROFILE_RELEASE_{name}": value for name, value in PROFILE.items()}
        level = "CARGO_PROFILE_RELEASE_OPT_LEVEL"
        self.build_environment = {**os.environ, **release, level: "0", "RUSTFLAGS": FLAGS,
                                  "CARGO_TARGET_DIR": str(WORK / f"build{number}")}
        # The engine's oracle takes minutes unless it is optimized, too.
        self.test_environment = {**os.environ, **release, level: "3" if engine else "1",
                                 "CARGO_TARGET_DIR": str(WORK / f"rust{number}")}
        self.programs = []

    def build(self):
        # Named: a target out of the environment or cargo's configuration would change the folder.
        command = ["cargo", "build", "--release", "--locked", "-p", "dlpack_rs_cdylib"]
        command += ["--target", HOST]
        status, output = run(command, self.top, self.build_environment)
        if status == 0:
            library = pathlib.Path(self.build_environment["CARGO_TARGET_DIR"])
            name = "libdlpack_rs.so"
            shutil.copy(library / HOST / "release" / name, self.tests / "lib" / name)
        return status, output

    def compile(self):
        """The C programs, once."""
        lib = self.tests / "lib"
        link = lib / subprocess.check_output([ROOT / "crates/cdylib/soname.sh"], text=True).strip()
        link.unlink(missing_ok=True)
        link.symlink_to("libdlpack_rs.so")
        c_tests = self.top / "c_tests"
        names = {path.stem for path in c_tests.glob("test_*.c")} | {"catalogue", "sweep"}
        names -= LEFT_OUT
        self.programs = [name for name in FIRST if name in names]
        self.programs += sorted(names - set(FIRST))
        for name in self.programs:
            sources = sorted(c_tests.glob(f"{name}*.c" if name == "catalogue" else f"{name}.c"))
            parts = [c_tests / "harness.c", c_tests / "inject.c"]
            subprocess.run(["gcc", "-g", "-O1", "-std=c11", f"-I{self.top}/include", f"-I{c_tests}",
                            *sources, *parts, "-o", self.tests / name, f"-L{lib}", "-ldlpack_rs",
                            f"-Wl,-rpath,{lib}", "-ldl", "-lpthread"], check=True)

    def cargo_test(self, minutes, tests, *names):
        """The program that detected it, or None."""
        command = ["cargo", "test", "--release", "--locked", "-p", "dlpack_rs", *tests]
        command += ["--", *names]
        status, output = run(command, self.top, self.test_environment, minutes * TIME_MOST)
        if status == 0:
            return None
        if "error: could not compile" in output:
            return "no build" if self.engine else "nobody: no build"
        failed = re.search("^test (.*) \\.\\.\\. FAILED", output, re.M)
        who = failed[1] if self.engine and failed else "Rust tests"
        return f"{who} (too long)" if status == 124 else who

    def engine_noticed(self):
        """The test that detected it, or None."""
        tests = ["--test", "engine"]
        known = [word for name in ENGINE_FIRST for word in ("--skip", name)]
        return self.cargo_test(1, tests, *ENGINE_FIRST) or self.cargo_test(4, tests, *known)

    def noticed(self):
        """The test that detected it, or None."""
        for name in self.programs:
            status, _ = run([self.tests / name], self.tests, seconds=TIME_MOST)
            if status != 0:
                return f"{name} (too long)" if status == 124 else name
        tests = ["--lib", *(word for name in RUST_TESTS for word in ("--test", name))]
        return self.cargo_test(20, tests)

    def prepared(self):
        """The test that fails without a change, or None."""
        if self.engine:
            return self.cargo_test(20, ["--test", "engine", "--no-run"]) or self.engine_noticed()
        status, output = self.build()
        if status:
            sys.exit(output)
        self.compile()
        return self.noticed()

    def patched(self, mutant, back=False):
        flags = ["-R"] if back else []
        text = mutant["diff"].replace(f"+++ {mutant['title']}", f"+++ {mutant['file']}")
        subprocess.run(["patch", "-s", "-p0", *flags, mutant["file"]], cwd=self.top, text=True,
                       input=text, check=True)

    def outcome(self, mutant):
        """The outcome of a change: "no build", the test that detected it, or None."""
        self.patched(mutant)
        if self.engine:
            answer = self.engine_noticed()
        else:
            status, _ = self.build()
            answer = "no build" if status else self.noticed()
        self.patched(mutant, back=True)
        return answer


def listed(patterns):
    """The changes that cargo-mutants proposes for these files."""
    tool = shutil.which("cargo-mutants")
    if tool is None:
        sys.exit("cargo-mutants is not installed: cargo install cargo-mutants")
    command = [tool, "mutants", "--list", "--json", "--diff", "-d", ROOT]
    mutants = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    mutants = [m for m in mutants if any(fnmatch.fnmatch(m["file"], p) for p in patterns)]
    for mutant in mutants:
        mutant["title"] = mutant["name"].split(": ", 1)[1]
        line = re.search(r"^\+(?!\+\+ )(.*)", mutant["diff"], re.M).group(1)
        line = line.replace("/* ~ changed by cargo-mutants ~ */", "")
        mutant["key"] = f"{mutant['file']}: {mutant['title']}: {' '.join(line.split())}".strip()
        function = (mutant["function"] or {"function_name": "constants"})["function_name"]
        mutant["rule"] = f"{mutant['file']}: {function}: any"
    return mutants


def known():
    """Changes that no caller can observe: file, title and the changed line; any in a function."""
    lines = (ROOT / "tests/mutants.txt").read_text().splitlines()
    return {line.split(" # ", 1)[0].strip() for line in lines if line and not line.startswith("#")}


def check_known(mutants):
    """Whether each line of mutants.txt about these files is a change that is still possible."""
    files, keys = {m["file"] for m in mutants}, {m[word] for m in mutants for word in ("key", "rule")}
    stale = [key for key in known() - keys if key.split(":", 1)[0] in files
             or not (ROOT / key.split(":", 1)[0]).exists()]
    if stale:
        sys.exit("\n".join(["of mutants.txt, no change any more:", *sorted(stale)]))


def work(tree, waiting, told, end):
    while True:
        started = time.monotonic()
        try:
            mutant = waiting.get_nowait()
        except queue.Empty:
            mutant = None
        if mutant is None or started > end:
            told.put(None)
            return
        told.put((mutant, tree.outcome(mutant), time.monotonic() - started))


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--engine", action="store_true")
    parse.add_argument("--share", default="1/1")
    parse.add_argument("--shuffle", type=int)
    parse.add_argument("--minutes", type=float, default=float("inf"))
    parse.add_argument("--jobs", type=int, default=os.cpu_count())
    parse.add_argument("--file", action="append")
    parse.add_argument("--again", type=pathlib.Path)
    chosen = parse.parse_args()
    first, step = map(int, chosen.share.split("/"))
    mutants = listed(chosen.file or (ENGINE if chosen.engine else CORE))
    check_known(mutants)
    if chosen.shuffle is not None:
        random.Random(chosen.shuffle).shuffle(mutants)
    mutants = mutants[first - 1::step]
    if chosen.again:
        former = re.findall(r"^missed (\S+?):\d+: (.*)", chosen.again.read_text(), re.M)
        mutants = [m for m in mutants if (m["file"], m["title"]) in former]
    waiting, told = queue.Queue(), queue.Queue()
    for mutant in mutants:
        waiting.put(mutant)
    trees = [Tree(number, chosen.engine) for number in range(chosen.jobs)]
    for tree in trees:
        noticed = tree.prepared()
        if noticed:
            sys.exit(f"{noticed} fails without any change")
    end = time.monotonic() + 60 * chosen.minutes
    for tree in trees:
        threading.Thread(target=work, args=(tree, waiting, told, end)).start()
    report(len(mutants), told, len(trees))


def report(count, told, trees):
    harmless, counts, missed, number = known(), {}, [], 0
    while trees:
        outcome = told.get()
        if outcome is None:
            trees -= 1
            continue
        number += 1
        mutant, who, seconds = outcome
        place = f"{mutant['file']}:{mutant['span']['start']['line']}"
        if who is None and harmless & {mutant["key"], mutant["rule"]}:
            who = "nobody, rightly"
        counts[who] = counts.get(who, 0) + 1
        if who is None:
            missed.append(mutant)
            print(f"missed {place}: {mutant['title']}\n       {mutant['key']}")
        elif os.environ.get("MUTANTS_VERBOSE"):
            print(f"{number}/{count} {place}: {mutant['title']}: {who} ({seconds:.0f} s)")
        sys.stdout.flush()
    for who, times in sorted(counts.items(), key=lambda pair: -pair[1]):
        print(f"{times:6} {who or 'missed'}")
    idle = counts.get("no build", 0) + counts.get("nobody: no build", 0)
    print(f"{number - idle - len(missed)} passed, {len(missed)} failed")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
