"""Releases: chains of hand-overs of any length, and cycles that the garbage collector must find."""

import ctypes
import gc
import random
import sys
import weakref

import numpy as np
import pytest

import py_module
import pythons

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
    "array of NumPy": "m.from_dlpack(np.from_dlpack(t))",
    "view of such an array": "m.from_dlpack(np.from_dlpack(t)[:][:])",
    "array over a memoryview": "m.from_dlpack(np.asarray(t.memoryview()))",
    "numpy()": "m.from_dlpack(t.numpy())",
    "dtype that NumPy does not export": "m.from_dlpack(t.view('bfloat16').numpy()).view('float64')",
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
    pythons.check(sys.executable, script)


ARRAYS = {
    "from_dlpack": np.from_dlpack,
    "numpy()": lambda t: t.numpy(),
    "memoryview": lambda t: np.asarray(t.memoryview()),
}


def changed(rng, array):
    """A view of it, of at least as much of its memory as an element, or of none."""
    steps = (slice(None), slice(None, None, -1), slice(None, None, 2), slice(1, None), np.newaxis)
    kind = rng.randrange(4)
    if kind == 0 and array.ndim < 6:
        return array[tuple(rng.choice(steps) for _ in range(rng.randrange(array.ndim + 1)))]
    if kind == 1:
        return array.transpose(rng.sample(range(array.ndim), array.ndim))
    view = array[:]
    view.flags.writeable &= kind == 2
    return view


@pytest.mark.parametrize("seed", range(60))
def test_a_tensor_over_an_array_over_a_tensor_is_that_array(seed):
    rng = random.Random(seed)
    array = np.arange(60.0).reshape(3, 4, 5)
    gone, t, due = weakref.ref(array), m.from_dlpack(array), array
    for _ in range(8):
        road = ARRAYS[rng.choice(list(ARRAYS))]
        last, due, seed = road(t), due[...], rng.random()
        due.flags.writeable &= last.flags.writeable
        last, due = (changed(random.Random(seed), x) for x in (last, due))
        t = m.from_dlpack(last)
        assert t.tolist() == due.tolist() and t.shape == due.shape
        if due.size:  # else NumPy may have made memory of its own
            assert t.readonly != due.flags.writeable
            assert t.data_ptr == due.__array_interface__["data"][0]
    if not t.readonly:
        t.fill(7.0)
        assert (due == 7).all()
    del array, due
    assert not last.size or gone() is not None
    del last, t
    assert gone() is None


class Sub(np.ndarray):
    pass


def moved(array):
    """The array, with other memory, of which what it keeps knows nothing."""
    other = np.arange(9.0)
    ctypes.c_void_p.from_address(id(array) + object.__basicsize__).value = other.ctypes.data
    return array, other


@pytest.mark.parametrize("road", ARRAYS)
@pytest.mark.parametrize("kept, made", {
    "an array": (False, lambda a: (a, None)), "a view": (False, lambda a: (a[1:], None)),
    "an empty view": (False, lambda a: (a[:0], None)), "other memory": (True, moved),
    "of a type of Python": (True, lambda a: (a.view(Sub), None)),
    "of a type of Python, a view of it": (True, lambda a: (np.ndarray.view(a.view(Sub)), None)),
}.values())
def test_an_array_is_kept_unless_it_only_lends_our_memory(road, kept, made):
    array, memory = made(ARRAYS[road](m.from_dlpack(np.arange(6.0))))
    due, held = array.tolist(), weakref.ref(array)
    t = m.from_dlpack(array)
    del array
    assert (held() is not None) == kept and t.tolist() == due
    del t
    assert held() is None


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
