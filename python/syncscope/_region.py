"""Blocks that may not wait."""
import sys
import threading

from . import _allow
from ._blocks import Block
from ._native import CannotWatchError
from ._waits import WaitError


class no_wait:  # noqa: N801, a block is written by it
    """A block of the thread that may not wait for the GPU.

    `allow` holds pairs of a pattern and a reason. At its end the block raises a `WaitError`, unless it is left by an exception of its
    own. Where there is no GPU it raises a `NoCudaError` at its begin; where the driver's calls cannot be seen or told apart, a
    `CannotWatchError`.
    """

    def __init__(self, *, allow=()):
        self._entries = _allow.checked(allow)
        self._is_open = threading.Lock()
        self._block = None
        self._matched = set()
        """The patterns that matched a wait, in all blocks that have ended."""

    def __enter__(self):
        if not self._is_open.acquire(blocking=False):
            raise CannotWatchError("this block is open already: each `with` needs a `no_wait()` of its own")
        try:
            self._block = Block(sys._getframe(1))
        except BaseException:
            self._is_open.release()
            raise
        return self

    def __exit__(self, kind, error, trace):
        block, self._block = self._block, None
        self._is_open.release()
        # A generator that is closed ends without an error.
        has_failed = kind not in (None, GeneratorExit)
        try:
            bad = [wait for wait in block.close(sys._getframe(1)) if not self._is_allowed(wait)]
        except CannotWatchError:
            if has_failed:
                return False
            raise
        if bad and not has_failed:
            raise WaitError(bad, [pattern for pattern, _ in self._entries if pattern not in self._matched]) from None
        return False

    def _is_allowed(self, wait):
        matching = [pattern for pattern, _ in self._entries if _allow.is_matched(wait, pattern)]
        self._matched.update(matching)
        return bool(matching) or _allow.is_marked(wait)
