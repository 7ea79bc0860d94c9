#!/usr/bin/env python3
"""Violations of DLPack's rules beyond those of conformance/reports, each in a few lines.

    reproducers.py VENVS            all, each in the environment of its system (target/interop)
    reproducers.py SYSTEM NAME      one, with the Python that has the system

Prints "violated: ...", or "kept". What is printed before a crash is its reason. What they say was
seen on 2026-11-28 with the versions of systems/; dpnp is dpctl in this respect.
"""

import gc
import importlib
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

import run
from ours import Capsule, abi  # first: it sets the path to dlpack_rs

ENDS = "the process ends, or hangs, where "


def managed(capsule):
    return abi.capsule.managed(capsule)


def forged(edit, array=np.arange(12, dtype="f4").reshape(3, 4)):
    """A producer whose struct is edited before a consumer gets it."""
    class Forged(Capsule):
        def __dlpack__(self, **keywords):
            capsule = array.__dlpack__(**{k: v for k, v in keywords.items() if k == "max_version"})
            edit(managed(capsule))
            return capsule
    return Forged(None)


def member(path, value):
    """Sets a member of the struct, or of its tensor."""
    def edit(struct):
        *parts, last = path.split(".")
        for part in parts:
            struct = getattr(struct, part)
        setattr(struct, last, value)
    return edit


def first(pointer, value):
    def edit(struct):
        getattr(struct.dl_tensor, pointer)[0] = value
    return edit


def must_refuse(edit, why):
    """A tensor that a consumer has to refuse."""
    def judge(system):
        print(f"violated: {ENDS}{why}", flush=True)
        try:
            system.take(forged(edit))
        except Exception:
            return None
        return f"taken although {why}"
    return judge


def byte_offset(system):
    found = system.values(system.take(forged(member("dl_tensor.byte_offset", 4),
                                             np.arange(8, dtype="f4"))))
    return None if found[0] == 1 else f"the first element is {found[0]}, not the one at offset 4"


def no_deleter(system):
    print(f"violated: {ENDS}the deleter is NULL, which dlpack.h allows", flush=True)
    array = system.take(forged(member("deleter", None)))
    del array
    gc.collect()


def read_only(system):
    array = np.zeros(64, "f4")
    array.flags.writeable = False
    x = system.take(array)
    flags = managed(x.__dlpack__(max_version=(1, 0))).flags
    if system.address(x) == array.ctypes.data and not flags & 1:
        return f"a read-only array is exported again with flags {flags}"


def aliasing(system):
    x = system.make(np.ones((3, 4), "f4"))
    capsule = x.__dlpack__(max_version=(1, 0))
    x.resize_(12)
    shape = managed(capsule).dl_tensor.shape[:2]
    return None if shape == [3, 4] else f"resize_ of the source changed the exported shape: {shape}"


def exception(system):
    class Refuses(Capsule):
        def __dlpack__(self, **_):
            raise BufferError("why it cannot be exported")

    try:
        system.take(Refuses(None))
    except Exception as error:
        return None if isinstance(error, BufferError) else f"BufferError became {type(error)}"


def pending(system):
    print(f"violated: {ENDS}a capsule goes while an exception is raised", flush=True)
    x = system.exporter(system.make(np.ones(3, "f4")))
    try:
        x.__dlpack__(), 1 / 0
    except ZeroDivisionError:
        return None


def chain(system):
    x = system.take(system.take(np.ones(64, "f4")))
    print(f"violated: {ENDS}a tensor taken from a taken one is freed", flush=True)
    signal.alarm(10)
    del x


def device(system):
    said = system.make(np.ones(3, "f4")).__dlpack_device__()
    return None if said == (1, 0) else f"__dlpack_device__() is {said}, not (1, 0)"


def legacy(system):
    try:
        system.take(Capsule(np.ones(3, "f4").__dlpack__()))
    except Exception as error:
        return f"a legacy capsule is refused: {type(error).__name__}: {error}"


def version(system):
    try:
        system.make(np.ones(3, "f4")).__dlpack__(max_version=(0, 8))
    except Exception as error:
        return None if isinstance(error, BufferError) else f"{type(error).__name__}: {error}"


# By system: the check of the kit, and what shows it.
ALL = {
    "torch": {"P56 aliasing": aliasing, "R01 read-only": read_only},
    "tensorflow": {"C40 negative": must_refuse(first("shape", -3), "an extent is negative")},
    "tvm_ffi": {"P08 version": version,
                "C34 code": must_refuse(member("dl_tensor.dtype.code", 200), "its code is 200"),
                "C43 device": must_refuse(member("dl_tensor.device.device_type", 99),
                                          "its device type is 99")},
    "numpy": {"C58 stride": must_refuse(first("strides", 1 << 62), "a stride overflows"),
              "C59 shape": must_refuse(member("dl_tensor.shape", None), "shape is NULL")},
    "dpctl": {"C19 offset": byte_offset, "C15 deleter": no_deleter},
    "mlx": {"C48 exception": exception,
            "C10 major": must_refuse(member("version.major", 2), "its major version is 2")},
    "mxnet": {"C19 offset": byte_offset, "P39 pending": pending},
    "onnxruntime": {"C19 offset": byte_offset, "C15 deleter": no_deleter},
    "paddle": {"R06 chain": chain, "P02 device": device, "R01 read-only": read_only},
    "pyarrow": {"C05 legacy": legacy},
}


def main(folder, name=None):
    if name is not None:
        said = ALL[folder][name](importlib.import_module(f"systems.{folder}"))
        print(f"violated: {said}" if said else "kept", flush=True)
        return
    for system, name in ((system, name) for system in ALL for name in ALL[system]):
        python = Path(folder, run.declared(system)["venv"], "bin", "python")
        done = subprocess.run([python, "-B", __file__, system, name], capture_output=True,
                              text=True)
        print(f"{system} {name}: {(done.stdout.splitlines() or ['not run'])[-1]}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
