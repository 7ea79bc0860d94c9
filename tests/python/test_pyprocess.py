"""The Python functions of the C ABI where processes and interpreters end, fork and multiply."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pythons
from conftest import ROOT
from dlpack_rs import abi

HERE = Path(__file__).resolve().parent
START = """
import atexit, ctypes, gc, os, sys, threading
import numpy as np
import py_module, pyabi
from pyabi import capsule, consume, export, import_, legacy_capsule
array = np.arange(6.0)
tensor = import_(array)
m = py_module.load()
t = m.from_dlpack(array).reshape(2, 3)
"""


def check(script, start=START):
    pythons.check(sys.executable, start + script)


ENDS = {
    "everything outlives it": """
kept = [tensor, export(tensor), capsule(import_(array)), legacy_capsule(import_(array)), t, t.T,
        t.__dlpack__(), t.memoryview(), *(import_(bytearray(9)) for _ in range(9))]
sys.kept = [tensor, t.T, m.Tensor, import_(bytearray(9))]
np.kept, atexit.kept, gc.kept = capsule(import_(array)), import_(b"bytes"), import_(array)
class A: pass
a = A(); a.a = a; a.t = [tensor, t.T, m]; a.c = export(tensor); del a
for thing in tensor, export(tensor), capsule(import_(array)), import_(b"bytes"), t.T:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
atexit.register(lambda: np.from_dlpack(import_(array)))
atexit.register(lambda: t.T.copy().tolist())
""",
    "the module goes first": "sys.kept = [t, t.T]; del m; py_module._loaded.clear(); gc.collect()",
    "only the type is kept": "sys.kept = m.Tensor; del m, t; gc.collect()",
    "daemon threads go on": """
def churn():
    while True:
        np.from_dlpack(import_(array)); import_(bytearray(9)); m.from_dlpack(t.T.copy()).tolist()
for _ in range(3): threading.Thread(target=churn, daemon=True).start()
import time; time.sleep(0.2)
""",
    "children use what their parent made": """
kept = export(tensor, max_version=(1, 0))
for _ in range(3):
    child = os.fork()
    if child == 0:
        mine = consume(kept)
        assert np.array_equal(np.from_dlpack(import_(np.from_dlpack(tensor))), array)
        assert m.from_dlpack(t).T.copy().tolist() == t.T.tolist() and py_module.load() is m
        os._exit(0 if mine.address == tensor.address else 1)
    assert os.waitpid(child, 0)[1] == 0
""",
}


@pytest.mark.parametrize("how", ENDS)
def test_x10_the_interpreter_ends_cleanly(how):
    check(ENDS[how])


def test_x10_exit_codes_stay_as_they_are():
    for script, code in {"sys.exit(7)": 7, "os._exit(9)": 9, "raise KeyError": 1}.items():
        done = pythons.run(sys.executable, f"{START}kept = export(tensor); {script}")
        assert done.returncode == code and ("KeyError" in done.stderr) == (code == 1)


# --- Every Python on this machine ---------------------------------------------------------------

EVERY_PYTHON = pytest.mark.parametrize("python", pythons.PYTHONS, ids=pythons.short)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Compiles a C file of this folder."""
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    folder = tmp_path_factory.mktemp("compiled")

    def compile(name, *options):
        made = folder / name
        if not made.exists():
            subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-O1", "-I",
                            ROOT / "target" / "include", HERE / f"{name}.c", "-o", made, *options],
                           check=True)
        return made
    return compile


def of(python):
    version = pythons.version(python)
    if version is None:
        pytest.skip(f"{python} does not run, or lacks ctypes")
    return version


@EVERY_PYTHON
@pytest.mark.parametrize("scenario", ["restart", "together"])
def test_every_python_embedded(python, scenario, compiled):
    """Python ends while tensors are exported and restarts; interpreters with separate locks."""
    of(python)
    embedding = pythons.embedding(python)
    if embedding is None:
        pytest.skip(f"{python} has no shared library")
    command, library = embedding
    program = compiled("lives", "-ldl", "-lpthread")
    done = subprocess.run([*command, program, library, abi.library_path(), scenario],
                          capture_output=True, text=True, timeout=120)
    if done.returncode == 77:
        pytest.skip("interpreters share settings before 3.13")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Interpreters share the GIL before 3.12; ctypes of 3.12 does not load into one with its own.
CREATE = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
CREATE = [lambda: interpreters.create(isolated=False)]
if sys.version_info >= (3, 13):
    CREATE = [interpreters.create, lambda: interpreters.create("legacy")]
"""

OF_EACH = CREATE + """
for create in CREATE * 20:
    other = create()
    failed = interpreters.run_string(other, f'''
import sys; sys.path.insert(0, {os.getcwd()!r})
import py_module
m = py_module.load()
assert id(m.Tensor) != {id(m.Tensor)}, "a type of another interpreter"
t = m.empty((2, 2)); u = m.from_dlpack(t); v = t.T
assert type(u) is type(v) is m.Tensor and v.data_ptr == t.data_ptr
kept = [t.__dlpack__(max_version=(1, 0)), t.memoryview()]
assert py_module.fresh().Tensor is m.Tensor
''')
    assert failed is None, failed
    interpreters.destroy(other)
assert m.from_dlpack(t).T.data_ptr == t.data_ptr and py_module.fresh().Tensor is m.Tensor
"""


# What extensions keep of an interpreter.
KEPT = """
import ctypes
api = ctypes.pythonapi
for name in ["PyInterpreterState_Get", "PyInterpreterState_GetDict"]:
    getattr(api, name).restype = ctypes.c_void_p
api.PyInterpreterState_GetDict.argtypes = [ctypes.c_void_p]
kept = ctypes.cast(api.PyInterpreterState_GetDict(api.PyInterpreterState_Get()),
                   ctypes.py_object).value
"""

FORGETFUL = KEPT + """
import weakref

def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def another():
    ours, = (key for key in kept if str(key).startswith("libdlpack_rs "))
    del kept[ours]
    module = py_module.fresh()
    assert module.Tensor is not m.Tensor
    tensor = module.empty((2, 3)).T
    assert type(m.empty((2, 3))) is module.Tensor  # the interpreter's
    return weakref.ref(module), weakref.ref(module.Tensor), tensor

links = [another() for _ in range(3)]
gc.collect()
# A type that its tensors need stays, and no module; the last one is the interpreter's.
assert all(module() is None and kind() is not None for module, kind, tensor in links)
assert all(type(tensor) is kind() and tensor.T.shape == (2, 3) for _, kind, tensor in links)
links = [link[:2] for link in links]
gc.collect()
assert [kind() is not None for module, kind in links] == [False, False, True]
for round in range(2):
    before = rss()
    for count in range(1000):
        another()
        if count % 50 == 0:
            gc.collect()
    gc.collect()
assert rss() - before < 3 << 20, rss() - before  # a module and its type are 10 KB
"""


STEADY = """
import inspect
t = m.from_dlpack(bytearray(24)).view("int32").reshape(2, 3)
before = sys.getrefcount(m.Tensor)
for _ in range(20000):
    v = m.from_dlpack(t); v.T; v.__dlpack__(max_version=(1, 0)); v[0]; v.copy(); v.shape
del v
assert sys.getrefcount(m.Tensor) == before
assert str(inspect.signature(m.from_dlpack)).startswith("(x, /, *, device=None, copy=None, ")
"""

MODULE = """
import gc, os, sys, threading
import py_module
m = py_module.load()
t = m.empty((2, 3), "int32")
"""


@EVERY_PYTHON
@pytest.mark.parametrize("script", [STEADY, OF_EACH, FORGETFUL],
                         ids=["steady", "of-each-interpreter", "a-module-nobody-needs-goes"])
def test_every_python_has_the_module(python, script):
    of(python)
    pythons.check(python, MODULE + script)


@EVERY_PYTHON
def test_every_python_passes_the_quick_cases(python):
    of(python)
    done = subprocess.run([python, "-B", HERE / "quick.py"], capture_output=True, text=True,
                          env={**os.environ, "DLPACK_RS_LIBRARY": abi.library_path()}, timeout=120)
    assert done.returncode == 0 and " 0 failed" in done.stdout, done.stdout + done.stderr


ELSEWHERE = CREATE + r'''
import ctypes, gc, os, threading
import pyabi

pipe, seen = os.pipe(), os.pipe()  # addresses of tensors, and who deleted their objects
SETUP = f"""
import array, ctypes, gc, os, sys
sys.path[:0] = {sys.path!r}
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import pyabi
memory = array.array("d", [1.0, 2.0])
class Interface:
    def __init__(self):
        self.__array_interface__ = dict(version=3, shape=(2,), typestr="<f8",
                                        data=(memory.buffer_info()[0], False))
    def __del__(self):
        own = str(interpreters.get_current()) == interpreter
        os.write({seen[1]}, b"." if own and not sys.exc_info()[0] else b"!")
def address(thing):
    return ctypes.cast(pyabi.import_(thing).take(), ctypes.c_void_p).value
interpreter, source = str(interpreters.get_current()), array.array("d", [1.0])
"""
MAKE = f"""
for _ in range(ROUNDS):
    os.write({pipe[1]}, address(source).to_bytes(8, "little"))
    os.write({pipe[1]}, address(Interface()).to_bytes(8, "little"))
"""
ROUNDS, KINDS = 20, ["attached", "capsule", "detached", "foreign thread", "thread"]
attached, detached = pyabi.lib.dlrs_release, ctypes.CDLL(pyabi.abi.library_path()).dlrs_release
attached.argtypes = detached.argtypes = [ctypes.c_void_p]
capsules = ctypes.PyDLL(pyabi.abi.library_path())
start, libc = ctypes.cast(detached, ctypes.c_void_p), ctypes.CDLL(None)

def run(interpreter, script):
    failed = interpreters.run_string(interpreter, script)
    assert failed is None, failed

def release(kind):
    for _ in range(2 * ROUNDS):
        tensor = ctypes.c_void_p(int.from_bytes(os.read(pipe[0], 8), "little"))
        if kind == "attached":
            attached(tensor)
        elif kind == "capsule":  # that nobody consumes
            made = ctypes.c_void_p()
            assert not capsules.dlrs_py_capsule_new_take(
                ctypes.byref(tensor), ctypes.byref(made), None)
            ctypes.pythonapi.Py_DecRef(made)
        elif kind == "detached":
            detached(tensor)  # CDLL gives the lock up
        elif kind == "thread":
            thread = threading.Thread(target=detached, args=[tensor])
            thread.start()
            thread.join()
        else:  # one that Python has never met
            thread = ctypes.c_ulong()
            assert not libc.pthread_create(ctypes.byref(thread), None, start, tensor)
            assert not libc.pthread_join(thread, None)

for create in CREATE:
    other = create()
    run(other, SETUP)
    for kind in KINDS:
        run(other, MAKE.replace("ROUNDS", str(ROUNDS)))
        try:
            raise KeyError  # is not seen by what runs elsewhere
        except KeyError:
            release(kind)
        run(other, "gc.collect(); source.append(1.0)  # every buffer is released")
        said = os.read(seen[0], 100)
        assert said == b"." * ROUNDS, (kind, said)
    run(other, MAKE.replace("ROUNDS", str(ROUNDS)))
    interpreters.destroy(other)
    release("attached")  # of one that is gone
    gc.collect()
# And the other way round: of this interpreter, released in another one and by its thread.
exec(SETUP)
for create in CREATE:
    other = create()
    for _ in range(ROUNDS):
        for thing in source, Interface():
            run(other, f"""
import ctypes, sys
sys.path[:0] = {sys.path!r}
import pyabi
release = ctypes.{"CDLL" if _ % 2 else "PyDLL"}(pyabi.abi.library_path()).dlrs_release
release.argtypes = [ctypes.c_void_p]
release({address(thing)})
""")
            del thing
    interpreters.destroy(other)
    gc.collect()
    said = os.read(seen[0], 100)
    assert said == b"." * ROUNDS, said
source.append(1.0)
'''


@EVERY_PYTHON
def test_every_python_released_on_foreign_threads(python):
    """A tensor of one interpreter is released in another, on a thread, after its end."""
    of(python)
    pythons.check(python, ELSEWHERE)


IMPORTS = """
import sys, threading
sys.modules["ctypes"] = sys.modules["_ctypes"] = None  # not there
barrier, found = threading.Barrier(8), []

def work():
    barrier.wait(60)
    import dlpack_rs
    found.append(dlpack_rs.empty((2, 3)).T)

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
import dlpack_rs
assert [type(tensor) for tensor in found] == [dlpack_rs.Tensor] * 8
assert not FREE or sys._is_gil_enabled() is False
"""

IN_EACH = CREATE + """
import threading

def work():
    for _ in range(5):
        other = interpreters.create()  # with a lock of its own
        failed = interpreters.run_string(other, f'''
import sys
sys.path[:0] = {sys.path!r}
import dlpack_rs
t = dlpack_rs.from_dlpack(bytearray(6)).reshape(2, 3).T
assert type(t) is dlpack_rs.Tensor and t.shape == (3, 2) and "ctypes" not in sys.modules
''')
        assert failed is None, failed
        interpreters.destroy(other)

work()  # before any other interpreter has it
import dlpack_rs
threads = [threading.Thread(target=work) for _ in range(PARALLEL)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert dlpack_rs.from_dlpack(bytearray(6)).T.shape == (6,)
"""


@EVERY_PYTHON
def test_every_python_imports_it_from_threads_without_ctypes(python):
    of(python)
    free = pythons.ask(python, "sysconfig.get_config_var('Py_GIL_DISABLED')") == "1"
    pythons.check(python, IMPORTS.replace("FREE", str(free)))


@EVERY_PYTHON
def test_every_python_imports_it_in_interpreters_with_locks_of_their_own(python):
    version = of(python)
    if version < (3, 12):
        pytest.skip("all interpreters share one lock before 3.12")
    # Concurrent creation of interpreters is faulty in CPython 3.12.
    pythons.check(python, IN_EACH.replace("PARALLEL", "4" if version > (3, 12) else "1"))


TWO_COPIES = KEPT + """
import array, gc
import py_module
FROM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
TO = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.py_object))

def take(module, thing):
    out, table = ctypes.c_void_p(), py_module.table(module)
    call = ctypes.cast(table.managed_tensor_from_py_object_no_sync, ctypes.c_void_p).value
    assert FROM(call)(thing, out) == 0
    return out

def put(module, tensor):
    out, table = ctypes.py_object(), py_module.table(module)
    call = ctypes.cast(table.managed_tensor_to_py_object_no_sync, ctypes.c_void_p).value
    assert TO(call)(tensor, out) == 0
    made = out.value
    api.Py_DecRef(out)
    return made

def refused(module, thing):
    try:
        take(module, thing)
    except ValueError as error:
        return "no Tensor of this library" in str(error)

a, b = py_module.load(OURS), py_module.load(OTHER)
mine = a.from_dlpack(array.array("d", [1.0, 2.0]))
assert refused(b, mine) and refused(b, 3) and refused(b, a)
theirs = put(b, take(a, mine))  # takes it
assert a is not b and a.Tensor is not b.Tensor and type(theirs) is b.Tensor
assert refused(a, theirs) and theirs.tolist() == mine.tolist() == [1.0, 2.0]
assert b.from_dlpack(mine).data_ptr == a.from_dlpack(theirs).data_ptr == mine.data_ptr
back = put(a, take(b, theirs))
assert type(back) is a.Tensor and back.T.data_ptr == mine.data_ptr
names = [name for name in kept if str(name).startswith("libdlpack_rs")]
ours = {name: id(kept[name]) for name in names}
assert len(ours) == 2
for _ in range(100):  # neither throws the other's out
    for module, path in (a, OURS), (b, OTHER):
        assert py_module.fresh(path).Tensor is module.Tensor
        assert module.from_dlpack(bytearray(9)).T.shape == (9,)
        assert type(module.from_dlpack(mine)) is module.Tensor
assert ours == {name: id(kept[name]) for name in kept if str(name).startswith("libdlpack_rs")}
del a, b, mine, theirs, back
gc.collect()
"""


@pytest.fixture(scope="session")
def copy(tmp_path_factory):
    """Another copy of the library."""
    return shutil.copy(abi.library_path(), tmp_path_factory.mktemp("copy") / "copy.so")


@EVERY_PYTHON
def test_every_python_two_copies(python, copy):
    of(python)
    pythons.check(python, f"OURS, OTHER = {abi.library_path()!r}, {str(copy)!r}\n" + TWO_COPIES)


FIRST = CREATE + """
import ctypes, os
import py_module
table = py_module.table(py_module.load(COPY))
SCRIPT = f'''
import ctypes, sys
sys.path[:0] = {sys.path!r}
from dlpack_rs import abi  # which loads the library: not this copy
table, POINTER = abi.DLPackExchangeAPI.from_address({ctypes.addressof(table)}), ctypes.c_void_p
out = ctypes.c_void_p()

def call(name, *types):
    address = ctypes.cast(getattr(table, name), ctypes.c_void_p).value
    return ctypes.PYFUNCTYPE(ctypes.c_int, *types)(address)

take = call("managed_tensor_from_py_object_no_sync", ctypes.py_object, POINTER)
describe = call("dltensor_from_py_object_no_sync", ctypes.py_object, POINTER)
put = call("managed_tensor_to_py_object_no_sync", POINTER, POINTER)
stream = call("current_work_stream", ctypes.c_int, ctypes.c_int, POINTER)
room = (ctypes.c_char * 200)()
calls = [lambda: take(3, ctypes.addressof(out)), lambda: describe(object(), ctypes.addressof(room)),
         lambda: take(3, None), lambda: put(None, ctypes.addressof(out)),
         lambda: put(ctypes.addressof(room), None), lambda: stream(1, 0, None)]
for call in calls[START:] + calls[:START]:
    try:
        call()
    except ValueError:
        continue
    raise AssertionError
tensor = abi.Versioned()
shape = (ctypes.c_int64 * 2)(2, 3)
prototype = abi.DLTensor(ndim=2, shape=shape, device=abi.DLDevice(1, 0),
                         dtype=abi.DLDataType(abi.kDLFloat, 32, 1))
abi.call(abi.lib.dlrs_tensor_new_like, prototype, None, tensor)
assert put(ctypes.cast(tensor, ctypes.c_void_p), ctypes.addressof(out)) == 0  # makes the type
made = ctypes.cast(out, ctypes.py_object).value
assert made.shape == (2, 3) and made.T.shape == (3, 2)
import py_module
assert type(made) is py_module.load({COPY!r}).Tensor is not py_module.load().Tensor
'''
for create in CREATE:
    for first in range(6):
        other = create()
        failed = interpreters.run_string(other, SCRIPT.replace("START", str(first)))
        assert failed is None, (first, failed)
        interpreters.destroy(other)
"""


@EVERY_PYTHON
def test_every_python_the_exchange_api_comes_first(python, copy):
    """Any function of the table may be the first call of the library in an interpreter, which has
    no module yet."""
    of(python)
    pythons.check(python, f"COPY = {str(copy)!r}\n" + FIRST)


WINNER = """
import threading
import py_module
m = py_module.load()
t = m.empty((3,))
barrier, won = threading.Barrier(4), []

def work():
    for capsule in capsules:
        barrier.wait(60)
        try:
            won.append(m.from_dlpack(capsule).data_ptr)
        except (ValueError, BufferError):
            pass

for version in (1, 3), None:
    capsules = [t.__dlpack__(max_version=version) for _ in range(ROUNDS)]
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert len(won) == len(capsules), (version, len(won) - len(capsules))
    won.clear()
"""


@EVERY_PYTHON
def test_every_python_one_thread_wins_a_capsule(python):
    of(python)
    free = pythons.ask(python, "sysconfig.get_config_var('Py_GIL_DISABLED')") == "1"
    pythons.check(python, WINNER.replace("ROUNDS", "8000" if free else "300"))


ASKED = """
import ctypes
import py_module, pyabi
m = py_module.load()
imports = [m.from_dlpack, pyabi.import_]

def outcome(call, thing):
    try:
        call(thing)
    except BaseException as error:
        return type(error)

for second in RuntimeError, KeyboardInterrupt, MemoryError, AttributeError:
    class Lacking:  # the look-up itself raises, the second time something else
        looked = 0
        def __getattr__(self, name):
            if name != "__dlpack__":
                raise AttributeError(name)
            Lacking.looked += 1
            raise AttributeError(name) if Lacking.looked == 1 else second("mine")
    for call in imports:
        Lacking.looked = 0
        found = outcome(call, Lacking())
        assert found is second or second is AttributeError and found, (second, found)

# A metaclass: what getattr(type, name) says, in every Python.
source = m.from_dlpack(bytearray(9))
class Meta(type):
    def __getattr__(cls, name):
        if name == "__dlpack_c_exchange_api__":
            raise RuntimeError("mine")
        raise AttributeError(name)
class Property(type):
    @property
    def __dlpack_c_exchange_api__(cls):
        return m.Tensor.__dlpack_c_exchange_api__
class Nothing(type):
    def __getattr__(cls, name):
        raise AttributeError(name)
class All(type):
    def __getattribute__(cls, name):
        return Meta.__getattr__(cls, name)
class Derived(Meta):
    pass
class Plain(type):
    pass
for meta, expected in [(Meta, RuntimeError), (Property, None), (Nothing, None), (type, None),
                       (All, RuntimeError), (Derived, RuntimeError), (Plain, None)]:
    class Producer(metaclass=meta):
        def __dlpack__(self, **keywords):
            return source.__dlpack__(**keywords)
    for call in imports:
        assert outcome(call, Producer()) is expected, (meta, outcome(call, Producer()))
"""


@EVERY_PYTHON
def test_every_python_exceptions_propagate_without_retry(python):
    of(python)
    pythons.check(python, ASKED)


ODD = """
import ctypes, gc, itertools
import py_module, pyabi
from dlpack_rs import abi
m = py_module.load()
lib = ctypes.PyDLL(ODD)
NAMES = ["export_answer", "tensor", "stream_answer", "export_raises", "stream_raises",
         "deleter_raises"]
class Odd(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in NAMES]
odd = Odd.in_dll(lib, "odd")
count = lambda name: ctypes.c_int.in_dll(lib, name)
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
source = m.from_dlpack(bytearray(9))
NAME = b"dlpack_exchange_api"  # which the capsule does not copy
class Producer:
    __dlpack_c_exchange_api__ = new(ctypes.addressof(abi.DLPackExchangeAPI.in_dll(lib, "api")),
                                    NAME, None)
    def __dlpack__(self, **keywords):
        Producer.asked += 1
        [].append(len(str(keywords)))  # would be broken off by an exception that is set
        return source.__dlpack__(**keywords)
for values in itertools.product([0, -1], [1, 0], [0, -1], [0, 1], [0, 1], [0, 1]):
    for name, value in zip(NAMES, values):
        setattr(odd, name, value)
    for call in m.from_dlpack, pyabi.import_:
        Producer.asked = count("deleted").value = count("pending").value = 0
        failed = odd.export_answer != 0 or not odd.tensor
        made = call(Producer())  # what the table does not give, __dlpack__ does
        fell_back = failed or odd.stream_answer != 0
        seen = Producer.asked, count("deleted").value
        assert seen == (fell_back, fell_back and not failed), (values, call, seen)
        assert made.shape == ((9,) if fell_back else (3,))
        if not fell_back:
            try:
                raise ZeroDivisionError
            except ZeroDivisionError:
                if isinstance(made, pyabi.Tensor):
                    made.versioned = None  # its deleter would be called by ctypes
                else:
                    del made
                    assert count("deleted").value == 1
        made = None
        assert count("pending").value == 0, values
gc.collect()
"""


@EVERY_PYTHON
def test_every_python_odd_exchange_functions(python, compiled):
    """Each function fails or not, with an exception or not, in all combinations."""
    of(python)
    library = compiled("odd_api", "-shared", "-fPIC")
    pythons.check(python, f"ODD = {str(library)!r}\n" + ODD)


OPERATIONS = """
import array, ctypes, gc, sys
import py_module, pyabi
m = py_module.load()
a, t = array.array("d", range(6)), m.from_dlpack(array.array("d", range(6))).reshape(2, 3)
class Interface:
    data = array.array("d", [1.0, 2.0])
    __array_interface__ = dict(version=3, shape=(2,), typestr="<f8",
                               data=(data.buffer_info()[0], False))
class Old:
    def __dlpack__(self): return t.__dlpack__()
class New:
    def __dlpack__(self, **keywords): return t.__dlpack__(**keywords)
    def __dlpack_device__(self): return (1, 0)
class Broken:
    def __init__(self, error): self.error = error
    def __dlpack__(self, **keywords): raise self.error("mine")
class Bad(Interface):
    __array_interface__ = dict(Interface.__array_interface__, shape="x")
class Wrong:
    def __dlpack__(self, **keywords): return 3
imports = [m.from_dlpack, lambda x: m.from_dlpack(x, copy=True),
           lambda x: m.from_dlpack(x, device="cpu", copy=False),
           lambda x: m.from_dlpack(x, legacy_writable=True)]
things = [a, bytearray(9), b"bytes", memoryview(a), t, Interface(), Old(), New(), Bad(), Wrong(), 3,
          None, "text", object(), *map(Broken, [TypeError, AttributeError, KeyError])]
operations = [lambda x=x, call=call: call(x) for x in things for call in imports]
operations += [lambda: t.T, lambda: t[0], lambda: t[9], lambda: t["x"], lambda: t[..., None, ::2],
               lambda: t.shape, lambda: t.strides, lambda: t.dtype, lambda: t.device,
               lambda: t.tolist(), lambda: t.item(), lambda: repr(t), lambda: t.copy("F"),
               lambda: t.copy(order="Q"), lambda: t.contiguous(), lambda: t.to("cpu", copy=True),
               lambda: t.to("vulkan"), lambda: t.view("uint8"), lambda: t.view("nonsense"),
               lambda: t.reshape(3, -1), lambda: t.reshape(5), lambda: t.permute(1, 0),
               lambda: t.permute(0, 0), lambda: t.flip(), lambda: t.unsqueeze(0).squeeze(),
               lambda: t.broadcast_to(4, 2, 3), lambda: t.read_only(), lambda: m.Tensor(),
               lambda: m.empty((2, 2), "bfloat16"), lambda: m.empty((1 << 50,)), lambda: m.empty(),
               lambda: t.__dlpack__(), lambda: t.__dlpack__(max_version=(1, 3)),
               lambda: t.__dlpack__(max_version=3), lambda: t.__dlpack__(stream=1),
               lambda: t.__dlpack__(dl_device=(1, 0), copy=True, max_version=(1, 0)),
               lambda: m.from_dlpack(t.__dlpack__(max_version=(1, 0))),
               lambda: m.from_dlpack(t.__dlpack__()), lambda: t.__dlpack_device__()]

def attempt(operation):
    try:
        operation()
    except Exception as error:
        return error
"""

REFERENCES = OPERATIONS + """
class Elsewhere: # where no backend copies: it is asked for its own copy
    def __dlpack_device__(self): return 14, 0
    def __dlpack__(self, *, copy=None, **_):
        data = (1 + bool(copy)) << 40
        return pyabi.capsule(pyabi.Tensor(pyabi.abi.wrap(data, (4,), "int8", device="oneapi")))
things += [Elsewhere()]
operations += [lambda: m.from_dlpack(things[-1], copy=True)]
operations += [lambda x=x: pyabi.import_(x) for x in things]
operations += [lambda: pyabi.capsule(pyabi.import_(a)), lambda: pyabi.consume(t.__dlpack__()),
               lambda: pyabi.consume(3), lambda: pyabi.legacy_capsule(pyabi.import_(a)),
               lambda: pyabi.import_(New(), stream=7), lambda: pyabi.import_(New(), flags=99)]
measure = getattr(sys, "gettotalrefcount", sys.getallocatedblocks)

def repeat(operation, rounds):
    for _ in range(rounds):
        attempt(operation)
    gc.collect()
    return measure()

for place, operation in enumerate(operations):
    repeat(operation, 5)
    # One that leaves something leaves it each time; Python's lists of free objects fill up once.
    for _ in range(12):
        before = repeat(operation, 1)
        grown = repeat(operation, 50) - before
        if grown < 25:
            break
    assert grown < 25, (place, grown, attempt(operation))
"""


@EVERY_PYTHON
def test_every_python_references(python):
    of(python)
    pythons.check(python, REFERENCES)


NO_MEMORY = OPERATIONS + """
import _testcapi
for place, operation in enumerate(operations):
    expected = type(attempt(operation))
    for k in range(30):
        _testcapi.set_nomemory(k, k + 1)
        try:
            error = attempt(operation)
        except MemoryError as caught:
            error = caught
        finally:
            _testcapi.remove_mem_hooks()
        if type(error) is SystemError and "built-in" not in str(error):
            continue  # CPython's own lapses: [][3] and functions in Python have them, too
        assert type(error) in (type(None), MemoryError, expected), (place, k, repr(error))
assert t.T.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
"""


@EVERY_PYTHON
def test_every_python_without_memory(python):
    """The k-th allocation of Python fails: MemoryError, or the exception of the call without it."""
    of(python)
    if pythons.ask(python, "__import__('_testcapi').set_nomemory") is None:
        pytest.skip("no _testcapi")
    pythons.check(python, NO_MEMORY)
