#!/usr/bin/env python3
"""Fetches the references of the header checks into a build folder.

    fetch.py dlpack   FOLDER   upstream's dlpack.h          -> FOLDER/dlpack.h
    fetch.py libclang FOLDER   libclang from PyPI           -> prints its folder
    fetch.py cffi     FOLDER   a virtual environment, cffi  -> prints its python
    fetch.py cuda     FOLDER   NVIDIA's cuda.h              -> FOLDER/cuda.h
    fetch.py hip      FOLDER   Debian's libamdhip64-dev     -> prints its include folder

Existing files are not fetched again. Needs python3 >= 3.9 with venv (Debian: python3-venv).
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
DLPACK_SHA256 = "62052bef24bd69bb7b52e95428f9e99bd7951783850c36c5f2a41e71fd63c2fc"
DLPACK_IN_WHEEL = "tvm_ffi/include/dlpack/dlpack.h"
CFFI = "cffi==2.0.0"
# One wheel for every host: it is only unpacked.
ONE_WHEEL = ["--only-binary=:all:", "--implementation=cp", "--python-version=311", "--abi=cp311",
             "--platform=manylinux_2_28_x86_64"]


def python(folder):
    """A virtual environment: the system's python may lack pip, or reject installations."""
    made = folder / "venv" / "bin" / "pip"  # created last
    with Lock(folder / "venv.lock"):
        if not made.exists():
            run(sys.executable, "-m", "venv", "--clear", folder / "venv")
    return made.with_name("python")


class Lock:
    """Serializes concurrent tests that would all create the virtual environment."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        import fcntl

        self.file = open(self.path, "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


def run(*command):
    """Runs a command; its output goes to the log, not to stdout."""
    subprocess.run([str(word) for word in command], check=True, stdout=sys.stderr)


def download(folder, into, requirements, *options):
    run(python(folder), "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
        "--no-deps", "--require-hashes", *options, "-r", HERE / requirements, "-d", into)
    return next(Path(into).glob("*.whl"))


def dlpack(folder):
    header = folder / "dlpack.h"
    if header.exists() and hashlib.sha256(header.read_bytes()).hexdigest() == DLPACK_SHA256:
        return header
    with tempfile.TemporaryDirectory(dir=folder) as into:
        wheel = download(folder, into, "requirements.txt", *ONE_WHEEL)
        text = zipfile.ZipFile(wheel).read(DLPACK_IN_WHEEL)
        found = hashlib.sha256(text).hexdigest()
        if found != DLPACK_SHA256:
            sys.exit(f"{wheel.name}: dlpack.h has sha256 {found}, expected {DLPACK_SHA256}")
        fresh = Path(into) / "dlpack.h"
        fresh.write_bytes(text)
        os.replace(fresh, header)  # atomic: another test may be reading it
    return header


def libclang(folder):
    library = folder / "libclang.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=folder) as into:
            wheel = download(folder, into, "requirements-libclang.txt", "--only-binary=:all:")
            archive = zipfile.ZipFile(wheel)
            name = next(name for name in archive.namelist() if name.endswith("/libclang.so"))
            fresh = Path(into) / "libclang.so"
            fresh.write_bytes(archive.read(name))
            os.replace(fresh, library)
    return folder


def cffi(folder):
    exe = python(folder)
    with Lock(folder / "venv.lock"):
        if subprocess.run([str(exe), "-c", "import cffi"], stderr=subprocess.DEVNULL).returncode:
            run(exe, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", CFFI)
    return exe


def cuda(folder):
    header = folder / "cuda.h"
    if not header.exists():
        with tempfile.TemporaryDirectory(dir=folder) as into:
            wheel = download(folder, into, "requirements-cuda.txt", "--only-binary=:all:",
                             "--platform=manylinux2014_x86_64")
            fresh = Path(into) / "cuda.h"
            fresh.write_bytes(zipfile.ZipFile(wheel).read("nvidia/cuda_runtime/include/cuda.h"))
            os.replace(fresh, header)
    return header


def hip(folder):
    for include in Path("/usr/include"), folder / "hip" / "usr" / "include":
        if (include / "hip" / "hip_runtime_api.h").exists():
            return include
    with tempfile.TemporaryDirectory(dir=folder) as into:
        command = ["apt-get", "download", "--quiet", "libamdhip64-dev"]
        subprocess.run(command, check=True, stdout=sys.stderr, cwd=into)
        run("dpkg-deb", "--extract", next(Path(into).glob("*.deb")), Path(into) / "hip")
        try:
            os.rename(Path(into) / "hip", folder / "hip")  # atomic, as above
        except OSError:
            if not (folder / "hip").exists():
                raise  # else another test was faster
    return folder / "hip" / "usr" / "include"


def main():
    what = {"dlpack": dlpack, "libclang": libclang, "cffi": cffi, "cuda": cuda, "hip": hip}
    if len(sys.argv) != 3 or sys.argv[1] not in what:
        sys.exit(__doc__)
    folder = Path(sys.argv[2]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        print(what[sys.argv[1]](folder))
    except subprocess.CalledProcessError as error:
        sys.exit(f"fetch.py {sys.argv[1]}: this failed: {' '.join(error.cmd)}")


if __name__ == "__main__":
    main()
