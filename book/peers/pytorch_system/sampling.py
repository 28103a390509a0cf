"""Runs cases in rounds and keeps their samples.

In each round every case runs once, in a random order. Warm-up rounds are the same but not kept; they end early once they
have taken as long as the time limit, after at least one. The rules are checked after each complete round. A time limit
leaves at least `MINIMUM` rounds. An interrupt ends the sampling after the current sample; complete rounds are kept.
"""

import math
import time
from dataclasses import dataclass

# A few samples suffice, since the interval that is published lies between runs.
MINIMUM = 3
# Where no number of samples is stated.
MAXIMUM = 10_000


class Interrupted(Exception):
    """The user asked to stop before one round was kept."""


class CaseFailed(Exception):
    """A case raised an error, or gave no finite number."""


@dataclass
class Samples:
    """One entry a case, in the order in which the cases were given."""

    values: list
    order: list
    started: list
    stopped_by: str


def sample(cases, sampling, random, between, interrupted, begun, clock=time.perf_counter):
    """Samples `cases`, pairs of a name and a function that returns a number.

    `between` is called before and after each sample; `interrupted` says whether to stop; starts count from `begun`.
    """
    rules = _Rules(sampling)
    kept = Samples([[] for _ in cases], [[] for _ in cases], [[] for _ in cases], "samples")
    order = list(range(len(cases)))

    def one_round():
        """The values, places and starts of a round; None where an interrupt cut it short."""
        random.shuffle(order)
        values = [None] * len(cases)
        for place, number in enumerate(order):
            if interrupted():
                return None
            values[number] = (*_run(cases[number], between, clock), place)
        return values

    first = clock()
    for number in range(sampling.warmup):
        if number > 0 and rules.late(clock() - first):
            break
        if one_round() is None:
            raise Interrupted
    first, rounds = clock(), 0
    while True:
        values = one_round()
        if values is None:
            if rounds == 0:
                raise Interrupted
            kept.stopped_by = "interrupt"
            return kept
        rounds += 1
        for number, (value, start, place) in enumerate(values):
            kept.values[number].append(value)
            kept.started[number].append(max(0.0, start - begun))
            kept.order[number].append(place)
        stopped_by = rules.met(rounds, clock() - first)
        if stopped_by:
            kept.stopped_by = stopped_by
            return kept


def _run(case, between, clock):
    name, measure = case
    try:
        between()
        start = clock()
        value = float(measure())
        # Again, so that a failure of the work of this case is reported for this case.
        between()
    except Exception as error:
        raise CaseFailed(f"{name}: {one_line(error)}") from error
    if not math.isfinite(value):
        raise CaseFailed(f"{name}: a sample is {value}")
    return value, start


@dataclass
class _Rules:
    sampling: object

    def late(self, elapsed):
        limit = self.sampling.time_limit
        return limit is not None and elapsed >= limit

    def met(self, rounds, elapsed):
        if rounds >= (self.sampling.samples or MAXIMUM):
            return "samples"
        return "time-limit" if self.late(elapsed) and rounds >= MINIMUM else None


def one_line(error):
    """An error in one line that is never empty."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
