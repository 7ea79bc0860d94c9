"""Faults of one combination of dtype, layout, request and producer."""

import os

import pytest
from dlpack_conformance import Tensor
from libraries import Consumer, Ours, is_versioned, managed, violated

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="checks run in forks")

CROSSED = {  # a fault of one combination, and the check that finds it
    "int8 is uint8": ({"C33", "C80"}, lambda tensor: (tensor.dtype.code, tensor.dtype.bits) == (
        0, 8) and setattr(tensor.dtype, "code", 1)),
    "int16 is uint16": ({"C33", "C80"}, lambda tensor: (tensor.dtype.code, tensor.dtype.bits) == (
        0, 16) and setattr(tensor.dtype, "code", 1)),
    "float64 is int64": ({"C33", "C80"}, lambda tensor: (tensor.dtype.code, tensor.dtype.bits) == (
        2, 64) and setattr(tensor.dtype, "code", 0)),
    "reversed begins late": ({"C25", "C80"}, lambda tensor: tensor.ndim == 2 and tensor.strides
                             and tensor.strides[0] < 0 and setattr(tensor, "byte_offset", 4)),
    "an offset with int64": ({"C80"}, lambda tensor: tensor.byte_offset and tensor.dtype.bits == 64
                             and setattr(tensor, "byte_offset", 56)),
}


@pytest.mark.parametrize("name", CROSSED)
def test_faults_of_one_combination(name):
    expected, edit = CROSSED[name]

    class Faulty(Consumer):
        def check(self, struct):
            super().check(struct)
            edit(struct.dl_tensor)

    found = violated(Faulty(), {"C01", "C19", "C25", "C33", "C80", "C81", "C82", "C83"})
    assert set(found) == expected, found


def test_copies_where_none_was_asked_for():
    class Copies(Ours):
        def make(self, tensor):
            class Export(Tensor):
                def __dlpack__(self, **keywords):
                    if self.code == (5, 64, 1) and keywords.get("copy") is False:
                        found = self.copy()
                        found.__class__ = Tensor
                        return found.__dlpack__(**{**keywords, "copy": None})
                    return super().__dlpack__(**keywords)

            x = tensor.copy()
            x.__class__ = Export
            return x

    assert set(violated(Copies(), {"P80", "P81", "P82", "P83", "P84"})) == {"P83"}


def test_a_flag_that_depends_on_the_request():
    class Forgets(Ours):
        def make_read_only(self, tensor):
            class Export(Tensor):
                def __dlpack__(self, **keywords):
                    capsule = super().__dlpack__(**keywords)
                    if keywords.get("copy") is False and is_versioned(managed(capsule)):
                        managed(capsule).flags = 0
                    return capsule

            x = tensor.copy().read_only()
            x.__class__ = Export
            return x

    assert set(violated(Forgets(), {"P19", "P80", "P81", "P82", "P83", "P84"})) == {"P82"}


def test_the_seed_draws_others():
    from dlpack_conformance import _cross

    def drawn(seed):
        _cross.SEED[0] = seed
        try:
            return list(_cross.draws((("dtype", _cross.DTYPES), ("layout", _cross.LAYOUTS)),
                                     _cross.CONSUMERS))
        finally:
            _cross.SEED[0] = 0

    assert drawn(1) == drawn(1) != drawn(2)
