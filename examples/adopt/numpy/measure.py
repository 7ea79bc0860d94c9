"""Nanoseconds of three exchanges with the NumPy on the path, as JSON: the minimum of many runs.

Each includes the release of its result. Called repeatedly, alternating with another build.
"""
import json
import sys
import time

import numpy as np

RUNS, CALLS = 300, 1000


def least(call):
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter_ns()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter_ns() - start)
    return best / CALLS


x = np.arange(12.0).reshape(3, 4)
export, version, import_ = x.__dlpack__, (1, 0), np.from_dlpack
calls = {"__dlpack__()": lambda: export(),
         "__dlpack__(max_version=(1, 0))": lambda: export(max_version=version),
         "from_dlpack": lambda: import_(x)}
nothing = least(lambda: None)  # the loop and the call of a lambda
json.dump({name: least(call) - nothing for name, call in calls.items()}, sys.stdout)
