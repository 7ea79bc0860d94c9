"""Every supported CPython on this machine: by name, of pyenv, of get_pythons.sh.

Scripts for them need no NumPy. `PYTHONS`: a folder with more of them, filled by get_pythons.sh.
"""

import functools
import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYENV = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
FETCHED = Path(os.environ.get("PYTHONS") or ROOT / "target" / "pythons" / "bin")
VERSIONS = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15", "3.11-dbg", "3.14d", "3.15d",
            "3.13t", "3.14t", "3.15t", "3.13td"]


def _found():
    for name in VERSIONS:
        yield shutil.which(f"python{name}")
        yield from map(str, PYENV.glob(f"{name.rstrip('td')}*/bin/python{name}"))
        yield str(FETCHED / f"python{name}")


# A shim of pyenv resolves to one of its pythons, or to none.
PYTHONS = sorted({path for path in _found()
                  if path and os.access(path, os.X_OK) and "shims" not in Path(path).parts})


def short(path):
    """A name for a test."""
    return path.replace(str(PYENV), "pyenv").replace(str(FETCHED), "fetched").strip("/")


@functools.cache
def ask(python, expression):
    """The value of an expression in a Python, as text; None when that Python does not run."""
    script = f"import ctypes, sys, sysconfig; print({expression})"
    done = subprocess.run([python, "-B", "-c", script], capture_output=True, text=True, timeout=60)
    return None if done.returncode else done.stdout.strip()


def version(python):
    """Its version in two parts; None when it does not run, or lacks ctypes."""
    said = ask(python, "*sys.version_info[:2]")
    return said and tuple(map(int, said.split()))


def run(python, script, *arguments, **environment):
    """The outcome of a script, which can import modules of this folder and of the package."""
    path = os.pathsep.join([str(HERE), str(ROOT / "python")])
    return subprocess.run([python, "-B", "-X", "faulthandler", "-c", script, *arguments], cwd=HERE,
                          capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": path, **environment})


def check(python, script, *arguments):
    """A script must succeed without output."""
    done = run(python, script, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stdout + done.stderr


def embedding(python):
    """The command before a program that embeds this Python, and its shared library; else None.

    For those of get_pythons.sh: `with-pythonX.Y LIBRARY` prints its path."""
    wrapper = Path(python).with_name("with-" + Path(python).name)
    if wrapper.exists():
        done = subprocess.run([wrapper], capture_output=True, text=True)
        library = done.stdout.strip()
        return ([str(wrapper)], library) if Path(library).exists() else None
    names = ("LIBDIR", "LDLIBRARY", "INSTSONAME", "MULTIARCH")
    config = {name: ask(python, f"sysconfig.get_config_var({name!r})") or "" for name in names}
    for folder in (config["LIBDIR"], os.path.join(config["LIBDIR"], config["MULTIARCH"])):
        for name in (config["INSTSONAME"], config["LDLIBRARY"]):
            library = Path(folder, name)
            if ".so" in name and library.exists():
                home = ask(python, "sys.base_prefix")
                return (["env", f"PYTHONHOME={home}"], str(library))
    return None
