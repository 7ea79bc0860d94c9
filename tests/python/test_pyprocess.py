"""The Python functions of the C ABI where processes and interpreters end, fork and multiply."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from conftest import ROOT
from dlpack_rs import abi

HERE = Path(__file__).resolve().parent
START = """
import atexit, ctypes, gc, os, sys, threading
import numpy as np
import pyabi
from pyabi import capsule, consume, export, import_, legacy_capsule
array = np.arange(6.0)
tensor = import_(array)
"""


def run(script, start=START, **keywords):
    path = os.pathsep.join([str(HERE), str(ROOT / "python")])
    return subprocess.run([sys.executable, "-B", "-X", "faulthandler", "-c", start + script],
                          capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": path}, **keywords)


def check(script, **keywords):
    done = run(script, **keywords)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("script", {
    "tensors in the main module": "",
    "unused capsules": "kept = [export(tensor), capsule(import_(array)), legacy_capsule(import_(array))]",
    "in modules that go first or last": "sys.kept = tensor; np.kept = capsule(import_(array))\n"
                                        "atexit.kept = import_(b'bytes'); gc.kept = import_(array)",
    "a cycle": "class A: pass\na = A(); a.a = a; a.t = tensor; a.c = export(tensor); del a",
    "buffers": "kept = [import_(bytearray(9)) for _ in range(9)]; sys.kept = import_(bytearray(9))",
    "for ever": "for t in (tensor, export(tensor), capsule(import_(array)), import_(b'bytes')):\n"
                "    ctypes.pythonapi.Py_IncRef(ctypes.py_object(t))",
    "exchanging at exit": "atexit.register(lambda: np.from_dlpack(import_(array)))",
    "daemon threads": "def churn():\n    while True:\n"
                      "        np.from_dlpack(import_(array)); import_(bytearray(9))\n"
                      "for _ in range(3): threading.Thread(target=churn, daemon=True).start()\n"
                      "import time; time.sleep(0.2)",
}.items(), ids=lambda item: item[0].replace(" ", "-"))
def test_x10_the_interpreter_ends_with_live_tensors(script):
    check(script[1])


def test_x10_exit_codes_stay_as_they_are():
    assert run("sys.exit(7)").returncode == 7
    assert run("kept = export(tensor); os._exit(9)").returncode == 9
    done = run("kept = export(tensor); raise KeyError('mine')")
    assert done.returncode == 1 and "KeyError: 'mine'" in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_x11_fork():
    check("""
kept = export(tensor, max_version=(1, 0))
for _ in range(3):
    child = os.fork()
    if child == 0:
        mine = consume(kept)
        assert np.array_equal(np.from_dlpack(import_(np.from_dlpack(tensor))), array)
        os._exit(0 if mine.address == tensor.address else 1)
    assert os.waitpid(child, 0)[1] == 0
""")


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_x11_multiprocessing(method):
    check(f"""
import multiprocessing
context = multiprocessing.get_context({method!r})
with context.Pool(2) as pool:
    assert pool.map(pyabi.sum_of, [array] * 4) == [15.0] * 4
""")


SUBINTERPRETERS = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

SCRIPT = '''
import array, ctypes, gc
import pyabi
source = array.array("d", [1, 2, 3])
for _ in range(50):
    t = pyabi.import_(source)
    assert t.shape == (3,) and t.dtype == (2, 64, 1)
    again = pyabi.import_(t)
    assert again.address == t.address
    kept = pyabi.export(t, max_version=(1, 0)), pyabi.export(t)
    taken = pyabi.consume(kept[0])
    assert taken.address == t.address
del t, again, taken, kept
gc.collect()
source.append(1.0)  # the buffers are released
'''
import pyabi, array
main = pyabi.import_(array.array("d", [1.0]))
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="ctypes refuses subinterpreters of its own")
def test_subinterpreters():
    check("""
for order in (0, 1):
    some = [interpreters.create() for _ in range(3)]
    for each in some if order else reversed(some):
        interpreters.run_string(each, SCRIPT)
    for each in some:
        interpreters.destroy(each)
        assert pyabi.import_(main).address == main.address
""", start=SUBINTERPRETERS)


@pytest.mark.parametrize("alive", ["True", "False"], ids=["still-there", "gone"])
def test_release_without_the_lock_where_there_are_subinterpreters(alive):
    # PyGILState_Check says yes to everyone then, up to Python 3.12.
    check(f"""
other = interpreters.create()
if not {alive}:
    interpreters.destroy(other)
release, libc = ctypes.CDLL(pyabi.abi.library_path()).dlrs_release, ctypes.CDLL(None)
thread, start = ctypes.c_ulong(), ctypes.cast(release, ctypes.c_void_p)
release.argtypes = [ctypes.c_void_p]
for _ in range(300):
    source = array.array("d", [1.0])
    tensors = [ctypes.cast(pyabi.import_(memoryview(source)).take(), ctypes.c_void_p) for _ in "ab"]
    release(tensors[0])  # CDLL gives the lock up
    if sys.platform != "win32":  # a thread that Python has never met
        assert not libc.pthread_create(ctypes.byref(thread), None, start, tensors[1])
        assert not libc.pthread_join(thread, None)
        source.append(1.0)  # the buffers are released
""", start=SUBINTERPRETERS.replace("import sys", "import ctypes, sys"))


EMBED = r"""
#include <Python.h>
#include <dlpack/dlpack_rs.h>

/* Starts Python, exchanges, ends Python, several times: what was kept must not outlive it. */
int main(void) {
  int i;
  DLManagedTensorVersioned *late = NULL;
  dlrs_error error;
  error.struct_size = sizeof error;
  if (dlrs_py_import(Py_None, NULL, &late, &error) != DLRS_UNSUPPORTED) return 1; /* not running */
  for (i = 0; i < 5; ++i) {
    DLManagedTensorVersioned *tensor;
    PyObject *bytes, *old, *kind;
    void *capsule;
    Py_Initialize();
    if (late != NULL && late->deleter != NULL) { late->deleter(late); late = NULL; }
    bytes = PyBytes_FromString("bytes");
    if (dlrs_py_import(bytes, NULL, &tensor, &error)) return 2;
    if (dlrs_py_capsule_new_take(&tensor, &capsule, &error)) return 3;
    /* A class whose __dlpack__ hands that capsule out: this needs the kept names. */
    PyRun_SimpleString("class P:\n    def __dlpack__(self, *, max_version=None):\n"
                       "        assert max_version == (1, 3)\n        return self.c\n");
    kind = PyObject_GetAttrString(PyImport_AddModule("__main__"), "P");
    old = PyObject_CallNoArgs(kind);
    PyObject_SetAttrString(old, "c", (PyObject *)capsule);
    Py_DECREF((PyObject *)capsule);
    if (dlrs_py_import(old, NULL, &late, &error)) { PyErr_Print(); puts(error.message); return 4; }
    if (late->dl_tensor.shape[0] != 5) return 5;
    Py_DECREF(old);
    Py_DECREF(kind);
    Py_DECREF(bytes);
    if (Py_FinalizeEx() != 0) return 6;
    late->deleter(late); /* after the end: what Python has is left alone */
    late = NULL;
  }
  return 0;
}
"""


def test_python_is_started_again_and_again(tmp_path):
    config = sysconfig.get_config_vars()
    include = sysconfig.get_paths()["include"]
    name = f"python{config['LDVERSION']}"
    library = ctypes_find(name, config)
    if not shutil.which("gcc") or not Path(include, "Python.h").exists() or library is None:
        pytest.skip("needs gcc and Python's headers and shared library: libpython3-dev")
    source, program = tmp_path / "embed.c", tmp_path / "embed"
    source.write_text(EMBED)
    ours = Path(abi.library_path())
    subprocess.run(["gcc", "-I", include, "-I", str(ROOT / "target" / "include"), str(source), "-o",
                    str(program), library, str(ours), f"-Wl,-rpath,{tmp_path}"], check=True)
    soname = f"{ours.name}.0"
    (tmp_path / soname).symlink_to(ours)
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def ctypes_find(name, config):
    """The shared library of this Python, if it has one."""
    for folder in (config["LIBDIR"], Path(config["LIBDIR"]) / (config["MULTIARCH"] or "")):
        found = Path(folder) / f"lib{name}.so"
        if found.exists():
            return str(found)
    return None
