"""Runs cases in rounds and keeps their samples.

In each round every case runs once, in a random order. Warm-up rounds are the same; their samples are kept apart. After the
rounds that are asked for, the warm-up goes on while the last three samples of a case rise or fall in one direction by more than
5 %, up to three times as many. Where one round is asked for, a second follows if the first took less than 60 ms, and a third if
a case fell by more than 30 %; and short ones follow until they have taken 3 ms together or are eight. The warm-up ends once it
has taken as long as the time limit, after at least one. A round before which the thread has left a slowed processor, as `host`
says, is one of the warm-up, too, and by how much the processor was slowed is kept with each sample. The rules are checked after
each complete round. The time limit is that of each case: together they have as many times as long. It leaves the fewest rounds
that are asked for. An interrupt ends the sampling after the current sample; complete rounds are kept.
"""

import math
import time
from dataclasses import dataclass

from .plan import MINIMUM

# How far the last three samples of a case may move in one direction in a warm-up, and how often it makes the rounds asked for.
MOVES = 0.05
MAX_ROUNDS = 3
# How far a case falls from the first round to the second where the first still loaded something, and how long a round may take
# that a second one is added to.
LOADS = 0.3
SHORT = 0.06
# From which length on a case without a warm-up is sampled on a processor that is not slowed, where one is found, in seconds.
LONG = 1e-3

# Up to how many rounds follow where one is asked for and all of them are short, and how long they take together.
BRIEF_ROUNDS, BRIEF = 8, 0.003
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
    slowdown: list
    warmup: list
    stopped_by: str


def sample(cases, sampling, random, between, interrupted, begun, clock=time.perf_counter, host=None,
           until_steady=True):
    """Samples `cases`, pairs of a name and a function that returns a number.

    `between` is called before and after each sample; `interrupted` says whether to stop; starts count from `begun`. A `host`
    is kept busy before and after each sample, and its slowed processors are left. A warm-up goes on `until_steady`, where that
    is asked for.
    """
    rules = _Rules(sampling, len(cases), until_steady)
    kept = Samples(*([[] for _ in cases] for _ in range(5)), "samples")
    order = list(range(len(cases)))

    last, took = 0.0, [0.0] * len(cases)

    def one_round():
        """The value, start, slowdown and place of each case in a round; None where an interrupt cut it short."""
        nonlocal last
        before = time.perf_counter()
        random.shuffle(order)
        values = [None] * len(cases)
        for place, number in enumerate(order):
            if interrupted():
                return None
            # What takes so long warms the caches of another processor itself.
            if host is not None and sampling.warmup == 0 and took[number] >= LONG:
                host.settle()
            *one, took[number] = _run(cases[number], between, clock, host)
            values[number] = (*one, place)
        last = time.perf_counter() - before
        return values

    def warm_up(values):
        for samples, (value, *_) in zip(kept.warmup, values):
            samples.append(value)

    # Without a warm-up the caches of another processor would be in the samples.
    moves = host is not None and sampling.warmup > 0
    if moves:
        host.settle()
    first = clock()
    while not rules.is_warm(kept.warmup, clock() - first):
        values = one_round()
        if values is None:
            raise Interrupted
        warm_up(values)
    first, rounds = clock(), 0
    while True:
        has_moved = moves and host.settle_before(last)
        values = one_round()
        if values is None:
            if rounds == 0:
                raise Interrupted
            kept.stopped_by = "interrupt"
            return kept
        if has_moved:
            host.charge(last)
            warm_up(values)
            continue
        for number, (value, start, slowdown, place) in enumerate(values):
            kept.values[number].append(value)
            kept.started[number].append(max(0.0, start - begun))
            kept.order[number].append(place)
            kept.slowdown[number] += slowdown
        rounds += 1
        stopped_by = rules.met(rounds, clock() - first)
        if stopped_by:
            kept.stopped_by = stopped_by
            return kept


def _run(case, between, clock, host):
    name, measure = case
    try:
        between()
        before = host.slowdown() if host else None
        start, called = clock(), time.perf_counter()
        value = float(measure())
        took = time.perf_counter() - called
        # Before the device is synchronized: the host may sleep meanwhile.
        slowdown = [round(max(before, host.slowdown()), 2)] if host else []
        # Again, so that a failure of the work of this case is reported for this case.
        between()
    except Exception as error:
        raise CaseFailed(f"{name}: {one_line(error)}") from error
    if not math.isfinite(value):
        raise CaseFailed(f"{name}: a sample is {value}")
    return value, start, slowdown, took


@dataclass
class _Rules:
    sampling: object
    cases: int
    until_steady: bool

    def late(self, elapsed):
        limit = self.sampling.time_limit
        return limit is not None and elapsed >= limit * self.cases

    def is_warm(self, samples, elapsed):
        rounds, asked = len(samples[0]), self.sampling.warmup
        if rounds > 0 and self.late(elapsed):
            return True
        is_long = not self.until_steady or rounds >= MAX_ROUNDS * asked
        is_one = rounds == 1 and elapsed < SHORT
        is_brief = self.until_steady and asked == 1 and rounds < BRIEF_ROUNDS and elapsed < BRIEF
        return rounds >= asked and not is_brief and (is_long or not (is_one or any(map(_is_moving, samples))))

    def met(self, rounds, elapsed):
        if rounds >= (self.sampling.samples or MAXIMUM):
            return "samples"
        return "time-limit" if self.late(elapsed) and rounds >= (self.sampling.fewest or MINIMUM) else None


def _is_moving(samples):
    if len(samples) < 3:
        return len(samples) == 2 and samples[1] < (1 - LOADS) * samples[0]
    a, b, c = samples[-3:]
    return (a < b < c or a > b > c) and abs(c - a) > MOVES * abs(b)


def one_line(error):
    """An error in one line that is never empty."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
