"""A library takes tensors made by hand: what becomes of them."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from ._model import Noted, Skipped, Unfreed, must, said
from ._numbers import same


def _without_frames(error):
    """An exception whose tracebacks, and those of its causes, keep no object alive."""
    chain = [error]
    while chain:
        one = chain.pop()
        if one is not None and one.__traceback__ is not None:
            one.__traceback__ = None
            chain += [one.__context__, one.__cause__]
    return error


def take(function, producer):
    """`(result, exception)` of a from_dlpack; the capsule is released afterwards."""
    result = failure = None
    try:
        result = function(producer)
    except Exception as error:
        failure = _without_frames(error)
    producer.refused = failure is not None
    producer.capsule = None
    if producer.needs_versioned and producer.asked and producer.gave_versioned is False:
        raise Skipped("requests no versioned tensor")
    gc.collect()
    return result, failure


def freed_once(library, *producers):
    """The deleter of each ran once; never if the tensor was not requested."""
    gc.collect()
    for _ in range(50):
        if any(producer.wrongly_freed() == 0 for producer in producers):
            library.settle()
    for producer in producers:
        wrong = producer.wrongly_freed()
        if wrong is not None:
            raise Unfreed(f"the deleter ran {wrong} times", producer.refused)


def took(library, producer, function=None):
    """The result for a tensor that may be rejected, and is then freed once."""
    result, failure = take(function or library.take, producer)
    if failure is not None:
        freed_once(library, producer)
        raise Noted(f"refused: {said(failure)}")
    return result


def taken(library, producer):
    """The result for a tensor that must not be rejected."""
    result, failure = take(library.take, producer)
    must(failure is None, f"refused: {said(failure)}" if failure else "")
    must(result is not None, "it returns None")
    return result


def right_or_refused(library, producer, expected):
    """The values are right or the tensor is rejected, and it is freed once in both cases."""
    result = took(library, producer)
    found, expected = list(library.values(result)), list(expected)
    must(same(found, expected), f"the values are {found[:6]}, not {expected[:6]}")
    found = result = None
    freed_once(library, producer)


def refused(library, producer):
    """An exception, and the tensor is freed once."""
    must(take(library.take, producer)[1] is not None, "accepted")
    freed_once(library, producer)


class Hidden:
    """A tensor of the library that does not look so; it keeps the arguments of its requests."""

    def __init__(self, tensor):
        self.tensor, self.asked = tensor, []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **keywords):
        self.asked.append(keywords)
        return self.tensor.__dlpack__(**keywords)


def resident():
    """Bytes of resident memory, without what malloc keeps of what was freed: aligned blocks that
    do not fit the next request can be all of it."""
    if hasattr(ctypes.pythonapi, "malloc_trim"):
        ctypes.pythonapi.malloc_trim(ctypes.c_size_t(0))
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def growth(action):
    """How many megabytes a repeated action leaks."""
    if not sys.platform.startswith("linux"):
        raise Skipped("resident memory is read on Linux only")
    for _ in range(5):
        action()
    gc.collect()
    before = resident()
    for _ in range(200):
        action()
    gc.collect()
    return (resident() - before) / 1e6


def threads(count, action):
    """Runs an action on threads; raises an exception of any of them."""
    with ThreadPoolExecutor(count) as pool:
        for one in [pool.submit(action) for _ in range(count)]:
            one.result()
