"""Blocks that may not wait."""
import functools
import inspect
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

    As a decorator of a function or a coroutine function, each call has a block of its own, in whatever thread. A generator is
    refused: it would be suspended with its block open.
    """

    def __init__(self, *, allow=()):
        self._entries = _allow.checked(allow)
        self._is_open = threading.Lock()
        self._block = None
        self._matched = set()
        """The patterns that matched a wait, in all blocks that have ended."""

    def __call__(self, function):
        # An object that is called is what its method is.
        kinds = [function, getattr(function, "__call__", None)]
        if any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in kinds):
            raise TypeError(
                f"a generator is suspended with its block open, and the block would have its caller's waits: put `with no_wait():` "
                f"into {function!r}, around what it does between two `yield`"
            )
        if isinstance(function, type) or not callable(function):
            raise TypeError(f"`no_wait()` decorates a function: {function!r} is none")
        if any(map(inspect.iscoroutinefunction, kinds)):

            async def watched(*arguments, **named):
                with self._anew():
                    return await function(*arguments, **named)

        else:

            def watched(*arguments, **named):
                with self._anew():
                    return function(*arguments, **named)

        return functools.wraps(function)(watched)

    def _anew(self):
        """A block of the same entries, which may be open at the same time."""
        block = no_wait(allow=self._entries)
        block._matched = self._matched
        return block

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
