"""Releases: chains of hand-overs of any length, and cycles that the garbage collector must find."""

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import py_module

m = py_module.load()
DEPTH = 20_000  # frames of 26 bytes would fill the thread's stack

# --- Long chains --------------------------------------------------------------------------------

# Each step imports what the last Tensor lends.
ROADS = {
    "memoryview": "m.from_dlpack(t.memoryview())",
    "view of a view": "m.from_dlpack(memoryview(t.memoryview())[:])",
    "view of other items": "m.from_dlpack(t.memoryview().cast('B').cast('d'))",
    "pickled out of band": "pickled(t)",
    "PickleBuffer": "m.from_dlpack(pickle.PickleBuffer(t.memoryview()))",
    "bytes of an array interface": "m.from_dlpack(Interface(t.memoryview()))",
    "capsule": "m.from_dlpack(t.__dlpack__(max_version=(1, 0)))",
    "legacy capsule": "m.from_dlpack(t.__dlpack__(), legacy_writable=True)",
    "exchange API": "m.from_dlpack(t)",
    "asarray": "m.asarray(t.memoryview())",
    "view": "t[:]",
    "alternating": "m.from_dlpack(t[:].memoryview())",
}
CHAIN = """
import pickle, threading, weakref, py_module
import numpy as np
m = py_module.load()

class Interface:
    def __init__(self, view):
        self.__array_interface__ = {{"version": 3, "shape": (3,), "typestr": "<f8", "data": view}}

def pickled(t):
    buffers = []
    return pickle.loads(pickle.dumps(t, 5, buffer_callback=buffers.append), buffers=buffers)

def run(keep, first):
    array = np.arange(3.0)
    gone, kept = weakref.ref(array), []
    t = m.from_dlpack(array)
    del array
    for number in range({depth}):
        t = {step}
        if keep:
            kept.append(t)
    assert t.tolist() == [0, 1, 2] and gone() is not None
    if first:
        kept.clear()
    del t
    while kept:
        kept.pop()
    assert gone() is None
    done.append(1)

done = []
threading.stack_size(512 << 10)
# The last one is all that is left; all are kept, and the first goes first; or the last.
for keep, first in (False, False), (True, True), (True, False):
    thread = threading.Thread(target=run, args=(keep, first))
    thread.start()
    thread.join()
assert len(done) == 3
"""


@pytest.mark.parametrize("road", ROADS)
def test_a_chain_of_any_length_is_released_on_a_small_stack(road):
    script = CHAIN.format(depth=DEPTH, step=ROADS[road])
    done = subprocess.run([sys.executable, "-B", "-X", "faulthandler", "-c", script],
                          cwd=Path(__file__).parent, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr[-2000:]


# --- Cycles -------------------------------------------------------------------------------------

class Buffer(bytearray):
    pass


class Interface:
    """Of memory that it owns."""

    def __init__(self, _):
        self.memory = np.zeros(4)
        self.__array_interface__ = self.memory.__array_interface__


class Lent:
    """An array interface whose data is a buffer, which refers to this."""

    def __init__(self, _):
        self.memory = Buffer(32)
        self.memory.owner = self
        self.__array_interface__ = {"version": 3, "shape": (4,), "typestr": "<f8",
                                    "data": self.memory}


OVER = {
    "asarray": m.asarray,
    "from_dlpack": m.from_dlpack,
    "a view": lambda x: m.asarray(x)[::2],
    "a view of a view": lambda x: m.asarray(x)[::2].flip(0).unsqueeze(0),
    "its memoryview": lambda x: m.asarray(x).memoryview(),
    "its memoryview imported": lambda x: m.asarray(m.asarray(x)[1:].memoryview()),
    "its capsule imported": lambda x: m.from_dlpack(m.asarray(x).__dlpack__(max_version=(1, 0))),
    "itself imported": lambda x: m.from_dlpack(m.asarray(x)),
}


def cycle(make, over):
    x = make(16)
    x.view = over(x)
    return weakref.ref(x), x.view


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("make", [Buffer, Interface, Lent])
def test_a_cycle_is_collected_once_nothing_else_holds_the_tensor(make, over):
    alive, view = cycle(make, OVER[over])
    gc.collect()
    assert alive() is not None
    del view
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("make", [Buffer, Interface, Lent])
def test_a_tensor_that_others_hold_keeps_its_object(make):
    others = {"a capsule": lambda t: t.__dlpack__(max_version=(1, 0)), "a view": lambda t: t[1:],
              "an array": np.from_dlpack, "a memoryview": lambda t: t.memoryview()}
    for name, hold in others.items():
        alive, view = cycle(make, m.asarray)
        held = hold(view)
        del view
        for _ in range(3):
            gc.collect()
        # What was cleared by mistake has lost its attributes.
        assert alive() is not None and alive().view.shape, name
        del held
        gc.collect()
        assert alive() is None, name


def test_only_a_tensor_over_memory_of_others_is_tracked():
    assert gc.is_tracked(m.asarray(Buffer(3)))
    assert not gc.is_tracked(m.zeros(3))
