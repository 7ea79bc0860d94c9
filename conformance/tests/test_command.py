"""The command line, the tests for pytest, and the processes that judge."""

import json
import os
import re
import subprocess
import sys
from xml.etree import ElementTree

import dlpack_conformance as conform
import pytest
from commands import command, environment, run
from libraries import Ours

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="checks run in forks")


def test_the_command_line():
    status, out, _ = run("--explain", "P15")
    assert status == 0 and "copy=True sets IS_COPIED" in out and "flag must be set" in out
    status, out, _ = run("--list")
    assert status == 0 and len(out.splitlines()) == len(conform.CHECKS)
    status, out, _ = run("--list", "--select", "P0*,ROBUST")
    ids = {line.split()[0] for line in out.splitlines()}
    assert "P01" in ids and "C38" in ids and "C01" not in ids
    for arguments in ((), ("--explain", "P99"), ("--list", "--select", "Q*"), ("no_such",),
                      ("numpy", "--known", "/no/such/file"), ("numpy", "--select", ""),
                      ("--list", "--select", ","), ("sys:maxsize",), ("--no-such",),
                      ("numpy", "--json", "--junit"), ("numpy", "--seconds", "nan"),
                      ("numpy", "--seconds", "-1")):
        status, out, err = run(*arguments)
        assert status == 2 and err and not out and "Traceback" not in err, arguments


FAULTY = """
import ctypes
from libraries import Both as Ours
class Two(Ours):
    def take(self, producer):
        result = super().take(producer)
        lent = producer.lent[-1]
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(lent.struct.deleter)(lent.address)
        return result
"""


def test_known_violations(tmp_path):
    (tmp_path / "faulty.py").write_text(FAULTY)
    where = environment(tmp_path)
    arguments = "faulty:Two", "--select", "C01,C03,P01"
    done = command(*arguments, env=where)
    assert done.returncode == 1 and "C01 MUST" in done.stdout, done
    known = tmp_path / "known.txt"
    known.write_text("C01 it counts twice  # a comment\n\n")
    done = command(*arguments, "--known", str(known), env=where)
    assert done.returncode == 0 and "known C01" in done.stdout, done
    known.write_text("\ufeffC01 as Windows\' editors write it\nP01 passes\n", encoding="utf-8")
    done = command(*arguments, "--known", str(known), "--junit", env=where)
    assert done.returncode == 1 and "P01 is known, and passes" in done.stderr, done
    assert counts_of_junit(done.stdout) == {"tests": 3, "failures": 1, "skipped": 1, "errors": 0}
    done = command(*arguments, "--junit", env=where)
    assert counts_of_junit(done.stdout) == {"tests": 3, "failures": 1, "skipped": 0, "errors": 0}
    page = command(*arguments, "--markdown", env=where).stdout
    assert re.search(r"\| C01 \| MUST \| .* \| fail: ", page), page


def counts_of_junit(text):
    """What the suite says of its cases, which has to be what they are."""
    suite = ElementTree.fromstring(text)
    said = {name: int(suite.get(name)) for name in ("tests", "failures", "skipped", "errors")}
    kinds = [case[0].tag if len(case) else "" for case in suite.iter("testcase")]
    assert said == {"tests": len(kinds), "failures": kinds.count("failure"),
                    "skipped": kinds.count("skipped"), "errors": kinds.count("error")}
    return said


def test_markdown_shows_what_was_said():
    odd = r"a|b \| <class 'x'> __dlpack__ *args `code` [link](x) &lt; a_b_c #1 ~~no~~"
    shown = conform._report.literal(odd + "\nnext")
    assert re.sub(r"\\(.)", r"\1", shown) == odd + " next"
    assert not re.search(r"(?<!\\)(\\\\)*[|<>`*_\[\]&~#]", shown)


SPAWNED = """
import os
from libraries import Both as Ours
class Spawned(Ours):
    fork = False
    def take(self, producer):
        if producer.tensor.ndim == 3:
            os.abort()
        return super().take(producer)
"""


def test_a_library_that_must_not_be_forked(tmp_path):
    (tmp_path / "spawned.py").write_text(SPAWNED)
    done = command("spawned:Spawned", "--select", "C01,C24,C52,P38", "--json",
                   env=environment(tmp_path))
    found = {check["id"]: check["outcome"] for check in json.loads(done.stdout)["checks"]}
    assert found == {"C01": "pass", "C24": "crash", "C52": "pass", "P38": "pass"}
    assert done.returncode == 1


def of_pytest(folder, select):
    """Runs pytest in the folder: the outcome of each test and what is said of it. What pytest
    prints depends on the environment, its report doesn't."""
    report = folder / "report.xml"
    done = subprocess.run([sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider",
                           f"--junitxml={report}", "-k", select, str(folder)],
                          capture_output=True, text=True, timeout=120, env=environment())
    assert report.is_file(), done
    return [(case[0].get("type", case[0].tag) if len(case) else "passed", "".join(case.itertext()))
            for case in ElementTree.parse(report).iter("testcase")]


def test_the_pytest_plug_in(tmp_path):
    (tmp_path / "test_it.py").write_text(FAULTY + """
import dlpack_conformance as conform
test_all = conform.checks(Two, known={"C01": "it counts twice"})
""")
    outcomes = [outcome for outcome, _ in of_pytest(tmp_path, "C01 or P01 or C03 or C02")]
    assert outcomes.count("pytest.xfail") == 1 and (
        outcomes.count("passed") == len(outcomes) - 1 >= 3)


ENDS = ["SystemExit(0)", "SystemExit('why')", "KeyboardInterrupt", "GeneratorExit", "BaseException",
        "__import__('pytest').skip.Exception('why')", "__import__('pytest').fail.Exception('why')"]
RAISES = """
class Raises(Two):
    def make(self, tensor):
        raise {}
"""


def test_identifiers_that_there_are_not_are_not_known():
    for known in ("P15", ["P99"], {"p15": "why"}, iter(["P1"])):
        with pytest.raises(ValueError, match="there is no check"):
            conform.checks(Ours, known)


def test_processes_that_a_library_leaves_are_not_waited_for(tmp_path):
    """They have the other end of the pipe, too."""
    class Leaves(Ours):
        def make(self, tensor):
            if os.fork() == 0:
                os.read(readable, 1)  # until the end of the test
                os._exit(0)
            return tensor.copy()

    readable, writable = os.pipe()
    os.set_inheritable(writable, False)
    try:
        verdict = conform.judge_forked(Leaves(), conform.CHECKS["P01"], 20)
    finally:
        os.write(writable, b"x")
        os.close(writable)
        os.close(readable)
    assert verdict.outcome == "pass", verdict


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python has no -P")
def test_workers_have_the_options_of_python(tmp_path):
    (tmp_path / "dlpack_conformance.py").write_text("raise SystemExit('another package')\n")
    done = subprocess.run([sys.executable, "-BP", "-m", "dlpack_conformance", "libraries:Both",
                           "--select", "P01"], capture_output=True, text=True, timeout=120,
                          env=environment(), cwd=tmp_path)
    assert done.returncode == 0, done


def test_a_library_that_raises_what_ends_a_program(tmp_path):
    """The child process ends there: otherwise it would run the rest of the parent's tests."""
    for number, end in enumerate(ENDS):
        (tmp_path / f"test_{number}.py").write_text(FAULTY + RAISES.format(end) + """
import dlpack_conformance as conform
test_it = conform.checks(Raises)
""")
    found = of_pytest(tmp_path, "P01 or P02")
    assert [outcome for outcome, _ in found] == ["failure", "pytest.skip"] * len(ENDS)
    assert all(re.search("(crash|P01 judges it): exit status 1: ", text) for _, text in found)


def test_seconds_are_those_of_the_command_line(tmp_path):
    (tmp_path / "faulty.py").write_text(FAULTY + "import time" + RAISES.format("time.sleep(600)"))
    done = command("faulty:Raises", "--select", "P01", "--seconds", "0.5",
                   env=environment(tmp_path))
    assert done.returncode == 1 and "no end within 0.5 s" in done.stdout, done


@pytest.mark.parametrize("form", ["--json", "--junit", "--markdown", None])
def test_messages_of_any_characters(tmp_path, form):
    odd = "".join(map(chr, [*range(0x20), *range(0x7f, 0xa1), 0x2028, 0xd800, 0xfffe, 0x1f600]))
    (tmp_path / "faulty.py").write_text(FAULTY + RAISES.format(f"ValueError({odd!a} + '<&>|')"))
    done = command("faulty:Raises", "--select", "P01", *[form] * bool(form),
                   env=environment(tmp_path))
    assert done.returncode == 1 and "Traceback" not in done.stderr, done
    assert all(c.isprintable() or c == "\n" for c in done.stdout)
    if form == "--junit":
        tree = ElementTree.fromstring(done.stdout)
        assert r"ValueError: \x00\x01" in tree.find("testcase/failure").get("message")


def test_pytest_without_a_file(tmp_path):
    (tmp_path / "mine.py").write_text("from libraries import Both\n")
    (tmp_path / "skips.txt").write_text("P27 why\nP01 as a test\n")
    (tmp_path / "xfails.txt").write_text("P06 passes, and is reported\n")
    report = tmp_path / "report.xml"
    subprocess.run([sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider",
                    f"--junitxml={report}", "--pyargs", "dlpack_conformance", "-k",
                    "P01 or P02 or P06 or P27"], capture_output=True, timeout=120, cwd=tmp_path,
                   env={**environment(tmp_path), "DLPACK_CONFORMANCE": "mine:Both"})
    cases = {case.get("name")[-4:-1]: case[0].tag if len(case) else "passed"
             for case in ElementTree.parse(report).iter("testcase")}
    assert cases == {"P01": "skipped", "P02": "passed", "P06": "failure", "P27": "skipped"}
