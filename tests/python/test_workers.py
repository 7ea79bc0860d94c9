"""Workers: values against NumPy, use from several threads, after a fork, and at the end."""

import gc
import os

import numpy as np
import pytest

import dlpack_rs as m


def threads():
    """Of this process; None where the system does not list them."""
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else None


def same(side, workers):
    """Transposes, also into another dtype."""
    array = np.arange(side * side, dtype="int32").reshape(side, side).T
    for dtype in ("int32", "float64"):
        made = m.empty((side, side), dtype)
        made.copy_from(array, workers=workers)
        assert (made.numpy() == array).all()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_values_are_those_of_numpy(count):
    with m.Workers(threads=count) as workers:
        for side in (1, 100, 181, 256, 300, 517, 1100):
            same(side, workers)
        same(300, None)


def test_threads_are_there_until_the_workers_are_closed():
    before = threads()
    with m.Workers(3) as workers:
        assert before is None or threads() == before + 2
    assert before is None or threads() <= before
    with pytest.raises(ValueError, match=r"copy_from: workers are closed"):
        m.empty(3).copy_from(m.zeros(3), workers=workers)
    workers.close()


def test_forgotten_workers_end():
    before = threads()
    m.Workers(3)
    gc.collect()
    assert before is None or threads() <= before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_copies_alone_and_makes_its_own():
    with m.Workers(3) as workers:
        same(300, workers)
        child = os.fork()
        if child == 0:
            try:
                same(300, workers)
                with m.Workers(2) as own:
                    same(300, own)
                workers.close()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        same(300, workers)


def test_wrong_arguments():
    for count in (65, -1, 1 << 40):
        with pytest.raises(ValueError, match="64"):
            m.Workers(count)
    with pytest.raises(TypeError):
        m.Workers("2")
    with pytest.raises(TypeError, match=r"copy_from\(\) needs workers made by dlpack_rs\.Workers"):
        m.empty(3).copy_from(m.zeros(3), workers=4)
