"""Elements of less than a byte, packed: every index, read and written, of every such dtype in any
layout. The reference is the memory as one integer of Python, of which an element is some bits.
"""

import operator

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings

import py_module
from fakes import SEEDS, Forger, refuses

m = py_module.load()
SOME = settings(max_examples=50, deadline=None, database=None)
PACKED = ["int1", "int2", "int4", "uint1", "uint2", "uint4", "float4_e2m1fn", "float6_e2m3fn",
          "float6_e3m2fn"]
LANES = [1, 1, 3, 5, 7]


def number(name, bits):
    """The value of an element's bits."""
    width = BITS[name]
    if name.startswith("float"):
        return float(np.array([bits], np.uint8).view(getattr(ml_dtypes, name))[0])
    return bits - (1 << width if name.startswith("int") and bits >> width - 1 else 0)


BITS = {name: int(name.lstrip("uintfloat").split("_")[0]) for name in PACKED}


class Packed:
    """A tensor over random bytes; `places` are the first bits of its elements."""

    def __init__(self, rng, name, lanes):
        self.width, self.lanes, self.name = BITS[name], lanes, name
        self.bits = self.width * lanes
        self.memory = np.frombuffer(bytearray(rng.bytes(self.bits * 24 // 8 + 2)), np.uint8)
        dtype = name + (f"x{lanes}" if lanes > 1 else "")
        count = self.bits * 24 // 8
        self.tensor = m.from_dlpack(self.memory)[1:1 + count].view(dtype)
        self.places = 8 + self.bits * np.arange(24)

    def reach(self, rng):
        """Another layout of the same memory."""
        for _ in range(rng.integers(5)):
            ndim = self.places.ndim
            change = rng.integers(5)
            if change == 0 and self.tensor.is_contiguous():
                shape = [(24,), (4, 6), (3, 8), (2, 3, 4), (1, 24), (2, 2, 6, 1)][rng.integers(6)]
                do = operator.methodcaller("reshape", shape)
                if self.places.size != 24:
                    continue
            elif change == 1:
                axes = tuple(rng.permutation(ndim).tolist())
                do = (lambda axes: lambda x: x.transpose(*axes))(axes)
            else:
                key = tuple(slice(int(rng.integers(3)), None, int(rng.choice([1, 1, 2, 3, -1, -2])))
                            for _ in range(ndim))
                do = (lambda key: lambda x: x[key])(key)
            places = do(self.places)
            if places.size == 0 or places.flat[0] % 8:
                continue  # such a view would start inside a byte
            self.places, self.tensor = places, do(self.tensor)
        assert self.tensor.shape == self.places.shape

    def now(self):
        return int.from_bytes(self.memory.tobytes(), "little")

    def element(self, place):
        return self.now() >> int(place) & (1 << self.bits) - 1

    def with_bits(self, memory, places, elements):
        for place, bits in zip(places, elements):
            memory = memory & ~((1 << self.bits) - 1 << int(place)) | int(bits) << int(place)
        return memory

    def value(self, bits):
        lanes = [number(self.name, bits >> self.width * lane & (1 << self.width) - 1)
                 for lane in range(self.lanes)]
        return lanes if self.lanes > 1 else lanes[0]

    def new(self, rng, shape):
        """A tensor of random elements, and their bits."""
        other = Packed(rng, self.name, self.lanes)
        count = int(np.prod(shape, dtype=int))
        chosen = [other.element(place) for place in other.places[:count]]
        return other.tensor[:count].reshape(shape), chosen


def same(got, want):
    return repr(got) == repr(want)  # -0.0 too


@pytest.mark.parametrize("name", PACKED)
@given(SEEDS)
@SOME
def test_every_element_is_read_and_written_by_its_index(name, seed):
    rng = np.random.default_rng(seed)
    p = Packed(rng, name, int(rng.choice(LANES)))
    p.reach(rng)
    for index in np.ndindex(p.places.shape):
        place = int(p.places[index])
        key = tuple(int(i - n * rng.integers(2)) for i, n in zip(index, p.places.shape))
        key = key[0] if len(key) == 1 and rng.integers(2) else key
        found = p.tensor[key]
        assert found.shape == () and found.dtype == p.tensor.dtype and found.readonly
        assert same(found.tolist(), p.value(p.element(place)))
        assert same(found.item(), found.tolist())
        assert int.from_bytes(found.tobytes(), "little") == p.element(place)
        value, (bits,) = p.new(rng, ())
        before, kept = p.now(), found.tolist()
        p.tensor[key] = p.value(bits) if p.lanes == 1 and rng.integers(2) else value
        assert p.now() == p.with_bits(before, [place], [bits])
        assert same(found.tolist(), kept)  # a value, no view


@pytest.mark.parametrize("name", PACKED)
@given(SEEDS)
@SOME
def test_slices_that_start_inside_a_byte_are_assigned(name, seed):
    rng = np.random.default_rng(seed)
    p = Packed(rng, name, int(rng.choice(LANES)))
    p.reach(rng)
    key = tuple(slice(int(rng.integers(3)), None, int(rng.choice([1, 2, -1])))
                if rng.integers(3) else int(rng.integers(extent)) for extent in p.places.shape)
    places = p.places[key]
    before, extents = p.now(), np.shape(places)
    if rng.integers(2):
        extents = extents[rng.integers(len(extents) + 1):]  # broadcast
    value, bits = p.new(rng, extents)
    p.tensor[key] = value
    bits = np.broadcast_to(np.reshape(bits, extents), np.shape(places))
    assert p.now() == p.with_bits(before, np.ravel(places), np.ravel(bits))
    # From its own memory, as if through a temporary.
    if p.tensor.is_contiguous():
        flat, places = p.tensor.reshape(-1), p.places.reshape(-1)
        before, moved = p.now(), [p.element(place) for place in places[:-1]]
        flat[1:] = flat[:-1]
        assert p.now() == p.with_bits(before, places[1:], moved)


@pytest.mark.parametrize("name", PACKED)
def test_iteration_and_sequence_functions_give_values(name):
    p = Packed(np.random.default_rng(3), name, 1)
    want = [p.value(p.element(place)) for place in p.places]
    assert [x.item() for x in p.tensor] == want == p.tensor.tolist()
    assert [x.item() for x in reversed(p.tensor)] == want[::-1]
    assert [p.tensor.copy()[i].item() for i in range(-24, 24)] == want * 2
    refuses(IndexError, "no such index", operator.getitem, p.tensor, 24)
    refuses(IndexError, "no such index", operator.setitem, p.tensor, -25, 0)


@pytest.mark.parametrize("name", PACKED)
def test_no_value_is_written_where_it_must_not_be(name):
    p = Packed(np.random.default_rng(4), name, 1)
    before = p.now()
    for tensor in p.tensor.read_only(), p.tensor.broadcast_to(2, 24)[0]:
        refuses(BufferError, "READ_ONLY", operator.setitem, tensor, 1, 0)
        refuses(BufferError, "READ_ONLY", operator.setitem, tensor, slice(1, None), 0)
    refuses(BufferError, "READ_ONLY", p.tensor[0].fill, 0)
    refuses(TypeError, ".", operator.setitem, p.tensor, 1, "1")
    refuses(ValueError, ".", operator.setitem, p.tensor, slice(1, None), [0, 0])
    if "int" in name:
        refuses(OverflowError, name, operator.setitem, p.tensor, 1, 1 << BITS[name])
    assert p.now() == before


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("count", range(1, 10))
def test_the_bytes_of_any_number_of_elements(name, count):
    p = Packed(np.random.default_rng(count), name, 1)
    tensor = p.tensor[:count]
    seen = tensor.view("uint8")
    nbytes = -(-count * p.bits // 8)
    assert seen.tolist() == p.memory[1:1 + nbytes].tolist() and seen.data_ptr == tensor.data_ptr
    assert seen.readonly is (count * p.bits % 8 > 0)
    if nbytes * 8 % p.bits == 0:
        assert seen.view(name)[:count].equal(tensor)
    assert bytes(tensor.view("uint8").memoryview()) == p.memory[1:1 + nbytes].tobytes()


def test_refused_views_name_what_works():
    t = m.asarray([[1, 2, 3], [4, 5, 6]], dtype="int4")
    with pytest.raises(ValueError, match="SUBBYTE.*Start at a whole byte, or convert to elements"):
        t[1]
    assert t.astype("int8")[1].tolist() == [4, 5, 6] and t.reshape(-1)[2:].tolist() == [3, 4, 5, 6]
    with pytest.raises(ValueError, match="NOT_VIEWABLE.*Reshape a compact copy to one axis"):
        t.view("uint8")
    assert t.copy().reshape(-1).view("uint8").tolist() == [0x21, 0x43, 0x65]
    with pytest.raises(ValueError, match="NOT_VIEWABLE.*Slice it to a multiple"):
        t.reshape(-1).view("uint16")
    assert t.reshape(-1)[:4].view("uint16").tolist() == [0x4321]
    for name, wide in ("uint2", "int8"), ("float4_e2m1fn", "float16"), ("float6_e3m2fn", "float16"):
        p = Packed(np.random.default_rng(5), name, 1)
        refuses(BufferError, rf"by astype\('{wide}'\)", p.tensor.numpy)
        assert p.tensor.astype(wide).numpy().tolist() == p.tensor.tolist()


def nibbles(device_type, *strides):
    """A foreign tensor of 2 x 4 int4, and its owner."""
    def change(tensor, inner):
        inner.dtype.code, inner.dtype.bits, inner.device.device_type = 0, 4, device_type
        for axis, numbers in enumerate(zip((2, 4), strides)):
            inner.shape[axis], inner.strides[axis] = numbers
    owner = Forger(change)
    return m.from_dlpack(owner), owner


def test_elements_that_share_memory_are_not_assigned_together():
    t, _owner = nibbles(1, 0, 1)
    refuses(BufferError, "OVERLAP_DST", operator.setitem, t, (slice(None), slice(1, None)), 3)
    t[0, 1] = 3
    assert t.tolist() == [[0, 3, 0, 0]] * 2


def test_elements_on_a_device_are_not_read():
    t, _owner = nibbles(2, 4, 1)
    assert t[0, 0].device == "cuda:0" and not t[0, 0].readonly  # a view
    refuses(BufferError, "CPU cannot read", operator.getitem, t, (0, 1))
    refuses(BufferError, "CPU cannot read", operator.setitem, t, (0, 1), 1)
