"""Medians of interleaved repeats: every round times each competitor once, in another order."""

import random
import time
from statistics import median

import peers

# These work on the calling thread alone, so the time that it works is all they cost.
ONE_THREAD = {"memcpy", "limit", "ours 1", "NumPy", "torch 1", *peers.NAMES}


class Result:
    """What one case gave: per round and competitor the seconds passed and those worked.

    Between competitors of one thread the second kind counts: other work on the machine does not
    lengthen it by taking the processor away.
    """

    def __init__(self, name, nbytes, rounds):
        self.name, self.nbytes, self.rounds = name, nbytes, rounds

    def speed(self, name):
        """Bytes per second."""
        times = [turn[name][name in ONE_THREAD] for turn in self.rounds if name in turn]
        return self.nbytes / median(times) if times else None

    def ratio(self, name, base="memcpy"):
        """How many times as fast as base: the median over rounds in which both ran."""
        kind = name in ONE_THREAD and base in ONE_THREAD
        pairs = [turn[base][kind] / turn[name][kind] for turn in self.rounds
                 if name in turn and base in turn]
        return median(pairs) if pairs else None


def measure(name, engines, nbytes, budget, least=3, most=101):
    """Times for about `budget` seconds, but those who are fast at least five times `least` rounds;
    who is slow sits out some rounds, but not the first."""
    calls = dict.fromkeys((engine.name for engine in engines), 1)
    for engine in engines if nbytes < 1 << 20 else ():
        # Small copies are repeated until the clock can see them.
        calls[engine.name] = max(1, min(200, int(1e-4 / max(engine.run()[0], 1e-9))))
    share, spent = budget / len(engines), dict.fromkeys(calls, 0.0)
    rounds, deadline = [], time.perf_counter() + budget
    order, shuffle = list(engines), random.Random(1).shuffle
    while len(rounds) < 5 * least or (len(rounds) < most and time.perf_counter() < deadline):
        turn = {}
        shuffle(order)  # a fixed order would favour whom the scheduler happens to spare
        for engine in order:
            if len(rounds) < least or spent[engine.name] <= share:
                turn[engine.name] = engine.run(calls[engine.name])
                spent[engine.name] += turn[engine.name][0] * calls[engine.name]
        rounds.append(turn)
    return Result(name, nbytes, rounds)
