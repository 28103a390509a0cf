"""Where the host computes at full speed: as `report` finds it.

The host does a fixed piece of work before and after each sample and takes its time; the shortest so far is its best. A sample is
kept with how many times the best the work took: before or after it, whichever is more. Where the least of three pieces takes more
than 1.3 times the best, the processor is slowed. The thread leaves it before a warm-up and before a round: for one that is not
slowed, the first that is found. Where all are slowed it goes to the fastest, and does not search again for a quarter of a
second. The first search tries all. The round after a move is one of the warm-up, since the caches hold nothing of the cases.
Such rounds are charged to an account, of half a second and a tenth of the time since the beginning.
"""

import time

from . import affinity

SLOWED = 1.3
PIECES = 3
REST = 0.25
AT_FIRST, GAINED = 0.5, 0.1


def piece():
    """The seconds of a piece of work, some tens of microseconds long."""
    start = time.perf_counter()
    chain = 1
    for step in range(600):
        chain = (chain * 5 ^ step) & 0xFFFF
    return time.perf_counter() - start


class Host:
    """`processors` is the module `affinity`, or what a test has for it."""

    def __init__(self, piece=piece, clock=time.perf_counter, processors=affinity):
        self.piece, self.clock, self.processors = piece, clock, processors
        self.best, self.rests_until = None, float("-inf")
        self.begun, self.charged = clock(), 0.0

    def slowdown(self):
        """Does a piece of work, and says how many times its best that took: the least of three where the first shows a processor
        that is slowed."""
        least = float("inf")
        for _ in range(PIECES):
            least = min(least, self._times_best(self.piece()))
            if least <= SLOWED:
                break
        return least

    def settle(self):
        """Has the thread leave its processor where that is slowed; says whether it did."""
        own = self.processors.kept_on()
        chosen = self._choose(own)
        if chosen != self.processors.kept_on():
            self.processors.stay_on(chosen)
        return chosen != own

    def settle_before(self, seconds):
        """The same, where the account holds a round of so many seconds."""
        return seconds <= AT_FIRST + GAINED * (self.clock() - self.begun) - self.charged and self.settle()

    def charge(self, seconds):
        """Takes what a round took that followed a move from the account."""
        self.charged += seconds

    def _choose(self, own):
        is_first = self.best is None
        if not (self.slowdown() > SLOWED or is_first) or self.clock() < self.rests_until:
            return own
        fastest, least = own, float("inf")
        for processor in self.processors.choices():
            self.processors.stay_on(processor)
            # The first piece finds other caches, and a processor that slept.
            self.piece()
            seconds = min(self.piece() for _ in range(PIECES))
            is_slow = self._times_best(seconds) > SLOWED
            if seconds < least:
                fastest, least = processor, seconds
            if not is_first and not is_slow:
                break
        self.rests_until = self.clock() + REST if self._times_best(least) > SLOWED else float("-inf")
        return fastest

    def _times_best(self, seconds):
        self.best = seconds if self.best is None else min(self.best, seconds)
        return seconds / self.best
