"""Every way to take a foreign object in agrees on it, asks it once, and loses no exception."""

import itertools

import numpy as np
import pytest

import py_module
from fakes import (NEW, Fake, Table, hands_out, ones, outcome, refuses, with_table, wrapped)
from pyabi import consume, export, import_

m = py_module.load()
RAISED = (AttributeError, TypeError, RuntimeError, BufferError, KeyboardInterrupt, SystemExit,
          MemoryError)
THROUGH = (KeyboardInterrupt, SystemExit, MemoryError)
WAYS = {
    "from_dlpack": m.from_dlpack,
    "from_dlpack to the CPU": lambda x: m.from_dlpack(x, device="cpu"),
    "asarray": m.asarray,
    "from_numpy": m.from_numpy,
    "copy_from": lambda x: m.empty((2, 3)).copy_from(x),
    "setitem": lambda x: m.empty((2, 3)).__setitem__(..., x),
    "fill": lambda x: m.empty((2, 3)).fill(x),
    "equal": lambda x: m.empty((2, 3)).equal(x),
    "dlrs_py_import": import_,
    **{f"dlrs_py_import by protocol {1 << bit}": lambda x, bit=bit: import_(x, protocols=1 << bit)
       for bit in (1, 3, 4)},
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def kind(way, thing):
    """The exception, or None."""
    found = outcome(way, thing)
    return type(found) if isinstance(found, BaseException) else None


@every_way
@pytest.mark.parametrize("raised", RAISED)
def test_what_dlpack_raises_comes_out_and_it_is_asked_once(way, raised):
    class Producer:
        asked = 0

        def __dlpack__(self, *, max_version=None, dl_device=None, copy=None):
            Producer.asked += 1
            raise raised("mine")

    if way in [WAYS[name] for name in WAYS if name[-1] in "68"]:
        pytest.skip("does not call it")
    found = kind(way, Producer())
    assert found is raised, found
    # With fewer keywords the standard's older producers are asked again.
    keywords = way in (WAYS["from_numpy"], WAYS["from_dlpack to the CPU"])
    again = raised is TypeError or raised is BufferError and keywords
    assert Producer.asked == 1 or again


@every_way
@pytest.mark.parametrize("name", ["__array_interface__", "__cuda_array_interface__"])
@pytest.mark.parametrize("raised", RAISED[1:])
def test_what_an_array_interface_raises_comes_out_and_it_is_asked_once(way, name, raised):
    asked = []

    def interface(self):
        asked.append(name)
        raise raised("mine")

    thing = type("Described", (), {name: property(interface)})()
    if kind(way, thing) is not raised:
        assert not asked
    assert len(asked) <= 1


@pytest.mark.parametrize("raised", RAISED)
@pytest.mark.parametrize("refusal", [TypeError, BufferError])
def test_only_what_comes_through_replaces_the_refusal_of_dlpack(raised, refusal):
    class Producer:
        def __dlpack__(self, **_):
            raise refusal("first")

        @property
        def __array_interface__(self):
            raise raised("second")

    assert kind(m.from_dlpack, Producer()) is (raised if raised in THROUGH else refusal)


@every_way
@pytest.mark.parametrize("attribute", ["is_neg", "requires_grad", "stop_gradient"])
@pytest.mark.parametrize("of", ["object", "metaclass"])
@pytest.mark.parametrize("raised", RAISED)
def test_attributes_beyond_the_protocol_that_raise_are_not_known(way, attribute, of, raised):
    asked = []

    def answer(_):
        asked.append(attribute)
        raise raised("mine")

    meta, body = type, {}
    if of == "metaclass":
        meta = type("Meta", (type,), {attribute: property(answer)})
    else:
        body[attribute] = answer if attribute == "is_neg" else property(answer)
    body |= Table(hands_out).members()
    thing = meta("Framework", (Fake,), body)()
    assert kind(way, thing) in ((raised,) if asked and raised in THROUGH else EXPECTED), asked
    assert len(asked) <= 1


# What the ways say of an array of two rows: fill takes one element, and no buffer is there.
EXPECTED = (None, ValueError, AttributeError, BufferError)


@pytest.mark.parametrize("dtype", ["f4", "i4", "?", "c8"])
@pytest.mark.parametrize("name, value", itertools.product(
    ["requires_grad", "stop_gradient", "is_neg", "other"], [True, False]))
def test_a_table_serves_unless_an_attribute_says_otherwise(dtype, name, value):
    """PyTorch's table checks nothing: its __dlpack__ is asked where there may be gradients, or a
    conjugate; a lazy negation is refused. Integers have neither."""
    thing = with_table(Table(lambda obj, out: hands_out(obj, out, lambda: ones().astype(dtype))),
                       **{name: (lambda self: value) if name == "is_neg" else value})
    if (name, value) == ("is_neg", True) and dtype in ("f4", "c8"):
        refuses(BufferError, "resolve_neg", m.from_dlpack, thing)
        return
    m.from_dlpack(thing)
    gradient = (name, value) in [("requires_grad", True), ("stop_gradient", False)]
    assert len(thing.calls) == (dtype == "c8" or dtype == "f4" and gradient)


CLASSES = [(), ("dlpack",), ("table",), ("dlpack", "table")]


@pytest.mark.parametrize("owners", itertools.product(CLASSES, repeat=3))
@pytest.mark.parametrize("mixed", [False, True])
def test_the_first_class_with_a_table_or_a_dlpack_speaks_for_the_object(owners, mixed):
    """A table serves unless a class before its own has a __dlpack__: for any order of classes."""
    called = []

    def of(level):
        def hand_out(obj, out):
            called.append(("table", level))
            return hands_out(obj, out)

        def dlpack(self, **keywords):
            called.append(("dlpack", level))
            return ones().__dlpack__(**keywords)

        members = {"dlpack": {"__dlpack__": dlpack}, "table": Table(hand_out).members()}
        return {name: value for what in owners[level] for name, value in members[what].items()}

    if mixed:  # three unrelated classes
        bases = tuple(type(f"Class{level}", (), of(level)) for level in range(3))
    else:  # one after the other
        bases = (object,)
        for level in reversed(range(3)):
            bases = (type(f"Class{level}", bases, of(level)),)
    thing = type("Object", bases, {})()
    first = next((level for level in range(3) if owners[level]), None)
    for way in (m.from_dlpack, m.asarray, import_):
        called.clear()
        found = kind(way, thing)
        if first is None:
            assert found is (TypeError if way is m.asarray else AttributeError) and not called
        else:
            speaks = "table" if "table" in owners[first] else "dlpack"
            assert (found, called) == (None, [(speaks, first)])


@every_way
@pytest.mark.parametrize("make", [
    lambda: np.ma.masked_array(np.ones((2, 3), "f4"), mask=np.eye(2, 3)),
    lambda: np.ma.masked_array(np.ones((2, 3), "f4")),
    lambda: np.ma.masked_array(np.ones((2, 3)))[::-1, 1:], lambda: np.ma.masked,
    lambda: np.ma.masked_array(1.0), lambda: np.ma.masked_array(np.zeros(2, "M8[s]")),
])
def test_arrays_with_a_mask_are_refused(way, make):
    with pytest.raises(BufferError, match=r"\.data, or its \.filled"):
        way(make())


@pytest.mark.parametrize("dtype", [None, "float32"])
@pytest.mark.parametrize("nest", [lambda x: [x, x], lambda x: [(x,), (x,)], lambda x: (x[0], x[1])])
def test_lists_of_arrays_with_a_mask_are_refused(nest, dtype):
    array = np.ma.masked_array(np.ones((2, 3)), mask=np.eye(2, 3))
    lists = nest(array.data)
    assert m.asarray(lists, dtype=dtype).tolist() == np.asarray(lists).tolist()
    with pytest.raises(BufferError, match="mask"):
        m.asarray(nest(array), dtype=dtype)


@pytest.mark.parametrize("raised", RAISED)
def test_the_pair_of_a_version_is_read_once(raised):
    class Index:
        asked = 0

        def __index__(self):
            Index.asked += 1
            raise raised("mine")

    for version in ((Index(), 0), (1, Index())):
        Index.asked = 0
        with pytest.raises(raised):
            m.zeros(3).__dlpack__(max_version=version)
        assert Index.asked == 1


def test_fill_asks_its_argument_once():
    t = m.zeros(2)
    t.fill(m.full((), 3.0).__dlpack__(max_version=(1, 0)))  # a capsule can be imported once
    assert t.tolist() == [3, 3]
    fake = Fake(NEW, make=lambda **k: m.full((1,), 4.0).__dlpack__(**k))
    t.fill(fake)
    assert t.tolist() == [4, 4] and len(fake.calls) == 1

    class Number:
        asked = 0

        def __float__(self):
            Number.asked += 1
            return 5.0

    t.fill(Number())
    assert t.tolist() == [5, 5] and Number.asked == 1


STREAMS = {1: (), 3: (1, 2, 0x1000), 11: (0, 0x1000)}


@pytest.mark.parametrize("device, stream", itertools.product(
    STREAMS, (None, -1, -2, 0, 1, 2, 0x1000)))
def test_memory_of_the_host_takes_no_wait_and_the_streams_of_its_driver(device, stream):
    memory = ones()
    tensor = wrapped(memory, (device, 0))
    if stream in (None, -1, *STREAMS[device]):
        assert consume(export(tensor, stream, (1, 3))).address == memory.ctypes.data
    else:
        with pytest.raises(RuntimeError, match="STREAM"):
            export(tensor, stream, (1, 3))


@pytest.mark.parametrize("device, stream", itertools.product(
    [(1, None), (3, None), (11, None), (1, 0), (3, 0)], (0, -1, 1, 2, 0x1000)))
def test_the_number_of_memory_without_streams_does_not_matter(device, stream):
    thing = Fake(device=device)
    assert np.array_equal(np.from_dlpack(import_(thing, stream=stream)), ones())
    assert "stream" not in thing.calls[0]
