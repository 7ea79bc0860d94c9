"""PyTorch's stream rules without a GPU: its cuda:0 and cuda:1 on the stand-in driver of c_tests."""

import os
import subprocess
import sys
from pathlib import Path

VENV, PIP = "torch", ["numpy==2.4.6", "torch==2.15.0", "nvidia-cuda-crt==13.2.86"]
HERE = Path(__file__).resolve().parents[1]
STANDIN = Path(sys.prefix).parent / "standin"


def version():
    from importlib.metadata import version as installed

    return f"{installed('torch')}, stand-in driver"


def build():
    """The stand-in driver, and the runtime over it, built with PyTorch's headers."""
    headers = next(Path(sys.prefix).glob("lib/python*/site-packages/nvidia/cu13/include"))
    commands = [[HERE.parents[1] / "c_tests" / "standin" / "build.sh", STANDIN],
                ["gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Wno-deprecated-declarations",
                 "-shared", "-fPIC", "-fvisibility=hidden", f"-I{headers}",
                 HERE / "cudart_standin.c", "-o", STANDIN / "libcudart_standin.so",
                 f"-L{STANDIN}/cuda", "-l:libcuda.so.1"]]
    for command in commands:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if done.returncode:
            raise OSError(f"{command[0]}: {(done.stderr or done.stdout).strip()[-300:]}")
    return "built"


def check(name):
    def run(_):
        from checks import Wrong

        done = subprocess.run(
            [sys.executable, "-B", HERE / "torch_streams.py", name], capture_output=True,
            text=True, timeout=200, env={**os.environ, "LD_LIBRARY_PATH": str(STANDIN / "cuda"),
                                         "LD_PRELOAD": str(STANDIN / "libcudart_standin.so")})
        said = [line for line in done.stdout.splitlines() if line.startswith("SAID ")]
        if done.returncode or not said:
            lines = done.stderr.strip().splitlines() or ["no output"]
            raise Wrong(f"exit code {done.returncode}: {lines[-1]}")
        return said[-1].removeprefix("SAID ")
    return run


CHECKS = {"the stand-in": lambda _: build(),
          **{name: check(name) for name in
             ("devices", "theirs, exchange API", "theirs, capsule", "ours on their stream",
              "between their streams", "stream numbers", "to the host", "a missing wait shows")}}
