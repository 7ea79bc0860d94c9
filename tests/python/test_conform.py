"""The conformance kit, a package of its own, on this library: on its exports, its imports, and its
re-exports of others' tensors; and `python -m dlpack_rs conform`."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import dlpack_rs
import pytest
from dlpack_rs import abi
from dlpack_rs.abi import capsule as capsules
from fakes import new_capsule

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "conformance"))
import dlpack_conformance as conform  # noqa: E402
from dlpack_conformance._libraries import Ours  # noqa: E402

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="checks run in forks")


def environment(*folders):
    package = os.path.dirname(os.path.dirname(dlpack_rs.__file__))
    return {**os.environ, "NO_COLOR": "1", "PYTHONPATH": os.pathsep.join([package, *folders])}


def command(*arguments, folders=(str(ROOT / "conformance"),)):
    return subprocess.run([sys.executable, "-B", "-m", "dlpack_rs", "conform", *arguments],
                          capture_output=True, text=True, timeout=300, env=environment(*folders))


def counted(done):
    return [check for check in json.loads(done.stdout)["checks"]
            if check["outcome"] in ("fail", "crash", "hang") and check["severity"] != "INFO"]


def test_this_library_keeps_every_rule():
    done = command("dlpack_rs", "--json")
    assert counted(done) == [] and done.returncode == 0
    assert len(json.loads(done.stdout)["checks"]) == len(conform.CHECKS) >= 150


def test_adapters_of_this_library_keep_every_rule():
    for make in ("from_dlpack(t)", "from_dlpack(t.numpy())", "asarray(t.numpy())"):
        done = command(f"dlpack_rs:lambda t: {make}", "--json")
        assert counted(done) == [], make


@pytest.mark.parametrize("module, expression", [
    ("numpy", "numpy.array(t.numpy())"),
    ("torch", "torch.from_dlpack(t).clone()"),
])
def test_tensors_of_others_exported_again_by_this_library(module, expression):
    pytest.importorskip(module)
    again = f"{module}:lambda t: __import__('dlpack_rs').from_dlpack({expression})"
    assert counted(command(again, "--json")) == []


def test_the_kit_that_is_not_installed():
    done = subprocess.run(
        [sys.executable, "-B", "-c", "import dlpack_rs.__main__ as m, sys; "
         "sys.modules['dlpack_conformance'] = None; sys.exit(m.main(['conform', 'numpy']))"],
        capture_output=True, text=True, env=environment())
    assert done.returncode == 2 and "pip install dlpack-conformance" in done.stderr, done


def forgetful_table():
    """The exchange API of Tensor, but imports are marked as writable."""
    table = abi.DLPackExchangeAPI.from_buffer_copy(abi.DLPackExchangeAPI.from_address(
        capsules.get_pointer(dlpack_rs.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api")))
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    original = kind(table.managed_tensor_to_py_object_no_sync)

    def forget(managed, out):
        abi.DLManagedTensorVersioned.from_address(managed).flags = 0
        return original(managed, out)

    function = kind(forget)
    table.managed_tensor_to_py_object_no_sync = ctypes.cast(function, ctypes.c_void_p)
    return table, function


def test_an_exchange_api_without_the_read_only_flag():
    table, function = forgetful_table()
    class Forgetful:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

        def __dlpack__(self, **keywords):
            return self.tensor.__dlpack__(**keywords)

        __dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(table), b"dlpack_exchange_api",
                                                None)

    class Producer(Ours):
        def make(self, tensor):
            return Forgetful(super().make(tensor))

    assert {name for name in ("X01", "X02", "X12")
            if conform.judge_forked(Producer(), conform.CHECKS[name]).counts} == {"X12"}
    assert function is not None


# ---- CUDA tensors, on the stand-in driver of c_tests, in processes that load it


DEVICES = """
import ctypes, json, sys
import dlpack_conformance as conform
from dlpack_rs.abi import capsule as capsules
from dlpack_conformance._libraries import Ours

FAULT = ""


class Faulty:
    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return (1, 0) if FAULT == "says the host" else self.tensor.__dlpack_device__()

    def __dlpack__(self, **keywords):
        stream = keywords.get("stream")
        if FAULT == "takes any stream" and stream in (0, -2):
            keywords["stream"] = None
        if FAULT == "takes words" and stream == "x":
            keywords["stream"] = None
        if FAULT == "knows one stream" and stream in (2, -1):
            raise BufferError("no such stream")
        if FAULT == "ignores dl_device":
            keywords.pop("dl_device", None)
        if FAULT == "copies anyway":
            keywords.pop("copy", None)
        if FAULT == "never copies" and "dl_device" not in keywords:
            keywords.pop("copy", None)
        capsule = self.tensor.reshape(self.tensor.shape).__dlpack__(**keywords)
        struct = capsules.managed(capsule)
        if FAULT == "forgets IS_COPIED":
            struct.flags = 0
        if FAULT == "strides in bytes":
            struct.dl_tensor.strides[0] = 16
        if FAULT == "begins late" and struct.dl_tensor.device.device_type == 1:
            struct.dl_tensor.byte_offset = 4
        return capsule


class Asks:
    def __init__(self, producer):
        self.producer = producer

    def __dlpack_device__(self):
        return self.producer.__dlpack_device__()

    def __dlpack__(self, **keywords):
        if FAULT == "passes stream 0":
            try:
                return self.producer.__dlpack__(**{**keywords, "stream": 0})
            except RuntimeError:
                pass
        return self.producer.__dlpack__(**keywords)


class Devices(Ours):
    def make_on(self, tensor, number):
        return Faulty(super().make_on(tensor, number))

    def take(self, producer):
        taken = super().take(Asks(producer))
        return taken.copy() if FAULT == "copies what it takes" else taken


found = {}
for FAULT in sys.argv[1:]:
    found[FAULT] = []
    for name, check in conform.CHECKS.items():
        if name[0] == "D":
            verdict = conform.judge(Devices(), check)
            assert verdict.outcome != "skip", verdict
            if verdict.violation:
                found[FAULT].append(name)
print(json.dumps(found))
"""

ON_DEVICES = {
    "": [],
    "says the host": ["D01"],
    "knows one stream": ["D02"],
    "takes any stream": ["D03", "D04"],
    "takes words": ["D04"],
    "begins late": ["D05"],
    "ignores dl_device": ["D05", "D06", "D07", "D09"],
    "forgets IS_COPIED": ["D06", "D08"],
    "copies anyway": ["D07", "D08"],
    "never copies": ["D08"],
    "strides in bytes": ["D10"],
    "passes stream 0": ["D11"],
    "copies what it takes": ["D12"],
}


@pytest.fixture(scope="module")
def on_devices(standin, tmp_path_factory):
    """The checks that each fault fails, in a process with the stand-in driver."""
    script = tmp_path_factory.mktemp("devices") / "devices.py"
    script.write_text(DEVICES)
    done = subprocess.run(
        [sys.executable, "-B", script, *ON_DEVICES], capture_output=True, text=True, timeout=300,
        env={**environment(str(ROOT / "conformance")), "LD_LIBRARY_PATH": str(standin / "cuda")})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("fault", ON_DEVICES)
def test_tensors_on_devices(on_devices, fault):
    found = on_devices[fault]
    assert set(ON_DEVICES[fault]) <= set(found), found
    assert fault or not found


def test_every_check_of_devices_was_seen_to_fail():
    seen = {name for names in ON_DEVICES.values() for name in names}
    assert seen == {name for name in conform.CHECKS if name[0] == "D"}
