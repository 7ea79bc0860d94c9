"""Medians of interleaved repeats: every round times each competitor once, one after the other."""

import time
from statistics import median


class Result:
    """What one case gave: seconds of each round by competitor, None where it sat out."""

    def __init__(self, name, nbytes, rounds):
        self.name, self.nbytes, self.rounds = name, nbytes, rounds

    def speed(self, name):
        """Bytes per second."""
        times = [turn[name] for turn in self.rounds if name in turn]
        return self.nbytes / median(times) if times else None

    def ratio(self, name, base="memcpy"):
        """How many times as fast as base: the median over rounds in which both ran."""
        pairs = [turn[base] / turn[name] for turn in self.rounds if name in turn and base in turn]
        return median(pairs) if pairs else None


def measure(name, engines, nbytes, budget, least=3, most=101):
    """Times for about `budget` seconds; who is slow sits out some rounds, but not the first."""
    calls = dict.fromkeys((engine.name for engine in engines), 1)
    for engine in engines if nbytes < 1 << 20 else ():
        # Small copies are repeated until the clock can see them.
        calls[engine.name] = max(1, min(200, int(1e-4 / max(engine.run(), 1e-9))))
    share, spent = budget / len(engines), dict.fromkeys(calls, 0.0)
    rounds, deadline = [], time.perf_counter() + budget
    while len(rounds) < least or (len(rounds) < most and time.perf_counter() < deadline):
        turn = {}
        for engine in engines:
            if len(rounds) < least or spent[engine.name] <= share:
                turn[engine.name] = engine.run(calls[engine.name])
                spent[engine.name] += turn[engine.name] * calls[engine.name]
        rounds.append(turn)
    return Result(name, nbytes, rounds)
