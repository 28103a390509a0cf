"""How fast the host computes now, against how fast it has computed: as `report` does it.

The host does a fixed piece of work and takes its time; the shortest so far is its best. While the least of three pieces takes
more than 1.3 times the best, the host is slowed. The work is done before each sample, too, so that no host that has to wake or
to raise its clock is in one. A warm-up goes on while the host is slowed, as far as the account allows: half a second, and
5 % of the time since the first piece of work.
"""

import time

SLOWED = 1.3
PIECES = 3
AT_FIRST, GAINED = 0.5, 0.05


def piece():
    """The seconds of a piece of work, some tens of microseconds long."""
    start = time.perf_counter()
    chain = 1
    for step in range(600):
        chain = (chain * 5 ^ step) & 0xFFFF
    return time.perf_counter() - start


class Host:
    def __init__(self, piece=piece, clock=time.perf_counter):
        self.piece, self.clock = piece, clock
        self.begun, self.best, self.waited = clock(), float("inf"), 0.0

    def keep_busy(self):
        """Does a piece of work; how many times its best it took."""
        seconds = self.piece()
        self.best = min(self.best, seconds)
        return seconds / self.best if self.best > 0 else 1.0

    def waited_for(self, seconds):
        """Whether a warm-up goes on for a round of so many seconds because the host is slowed."""
        slowed = all(self.keep_busy() > SLOWED for _ in range(PIECES))
        return slowed and seconds <= AT_FIRST + GAINED * (self.clock() - self.begun) - self.waited

    def charge(self, seconds):
        """Takes what that round took from the account."""
        self.waited += seconds
