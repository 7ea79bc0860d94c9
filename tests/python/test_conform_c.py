"""The conformance kit for C on the exchange API of Tensor, which needs a process with Python."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import dlpack_rs
import pytest
from dlpack_rs.abi import capsule as capsules

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "conformance"))
from dlpack_conformance import CHECKS, Tensor  # noqa: E402
from dlpack_conformance._texts import quoted  # noqa: E402
PASS, SKIP = 0, 2


class Verdict(ctypes.Structure):
    _fields_ = [("outcome", ctypes.c_int32), ("text", ctypes.c_char * 200)]


class Rule(ctypes.Structure):
    _fields_ = [*((name, ctypes.c_char_p) for name in ("id", "severity", "source", "url", "text")),
                ("ends", ctypes.c_int32)]


class Subject(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), *((name, ctypes.c_void_p) for name in (
        "name", "version", "context", "make", "produce", "produce_legacy", "produce_copy",
        "consume", "consume_legacy", "read", "reshape", "drop", "exchange_api", "object_drop",
        "object", "view"))]


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    if shutil.which("gcc") is None or not sys.platform.startswith("linux"):
        pytest.skip("no gcc")
    library = tmp_path_factory.mktemp("kit") / "libkit.so"
    sources = [path for path in (ROOT / "conform").glob("*.c") if path.name != "main.c"]
    subprocess.run(["gcc", "-std=c99", "-shared", "-fPIC", f"-I{ROOT / 'include'}", *sources,
                    "-o", library, "-lpthread"], check=True)
    kit = ctypes.PyDLL(str(library))
    kit.dlrs_conform_rule_at.restype = ctypes.POINTER(Rule)
    return kit


def test_the_exchange_api_of_tensor(kit):
    x, judged = dlpack_rs.from_dlpack(Tensor(range(12), (3, 4))).copy(), []
    table = capsules.get_pointer(type(x).__dlpack_c_exchange_api__, b"dlpack_exchange_api")
    subject = Subject(
        struct_size=ctypes.sizeof(Subject), exchange_api=table, object=id(x),
        object_drop=ctypes.cast(ctypes.pythonapi.Py_DecRef, ctypes.c_void_p).value)
    before = sys.getrefcount(x)
    for index in range(kit.dlrs_conform_count()):
        verdict, rule = Verdict(), kit.dlrs_conform_rule_at(index).contents
        assert kit.dlrs_conform_check(ctypes.byref(subject), index, ctypes.byref(verdict)) == 0
        of_the_api = rule.id.startswith(b"X")
        assert verdict.outcome == (PASS if of_the_api else SKIP), (rule.id, verdict.text)
        judged += [rule.id] if of_the_api else []
    assert len(judged) == 6 and sys.getrefcount(x) == before


def test_its_rules_are_those_of_the_python_kit(kit):
    for index in range(kit.dlrs_conform_count()):
        rule = kit.dlrs_conform_rule_at(index).contents
        check = CHECKS[rule.id.decode()]
        assert ((check.severity, *quoted(check.text)[:2], check.rule, check.ends)
                == (*(text.decode() for text in (rule.severity, rule.source, rule.url, rule.text)),
                    bool(rule.ends)))
    assert dlpack_rs.__version__
