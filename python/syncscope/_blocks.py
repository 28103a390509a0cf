"""The blocks that are open in a thread, and whose a wait is.

The library notes a wait in the innermost block of its thread. That is the block around it, unless code of an outer block goes on
meanwhile. A task of asyncio can do so, and so can a generator: each is left with its block open. That is an error here.
"""
import sys
import threading

from . import _native
from ._native import CannotWatchError
from ._stack import Bounds, frames_of, is_resumed, name_of, task_of
from ._waits import parse

_OVERLAP = "blocks of a thread overlap, and neither is within the other: whose a wait is cannot be told"


class _Thread(threading.local):
    def __init__(self):
        self.blocks = []
        """The innermost last. One that was closed out of order stays, until it is the last."""
        self.backward = None
        """Gives PyTorch's threads the backward pass back."""


_THREAD = _Thread()


class Block:
    """A block from its begin to its end."""

    def __init__(self, frame):
        _drop_closed()
        self._thread = _THREAD.blocks
        self._frames = frames_of(frame)
        self._task = task_of(self._frames)
        self._is_closed = self._overlaps = False
        for block in self._thread:
            if block._task not in (None, *self._frames):
                task = "{1} of {0}".format(*name_of(block._task))
                raise CannotWatchError(
                    f"another task of this thread has a block open, {task}: whose a wait is could not be told. Open one block "
                    "around both, such as around `asyncio.run`"
                )
        outer = (frame for block in self._thread for frame in block._frames)
        # Their waits would be noted here.
        self._left = {name_of(frame) for frame in outer if is_resumed(frame) and frame not in self._frames}
        _take_backward()
        try:
            _native.begin()
        except BaseException:
            _give_backward()
            raise
        self._thread.append(self)

    def close(self, frame):
        """The waits of the block."""
        _drop_closed()
        (frames, task), (self._frames, self._task) = (self._frames, self._task), ([], None)
        self._is_closed = True
        is_own = self._thread is _THREAD.blocks
        if not is_own or self._thread[-1] is not self:
            for block in self._thread:
                block._overlaps = True
        texts = _drop_closed()
        if not is_own:
            raise CannotWatchError("a block was closed by another thread than opened it: its waits cannot be told")
        if self._overlaps:
            raise CannotWatchError(_OVERLAP)
        bounds = Bounds(frames, frames_of(frame))
        waits = [parse(text) for text in texts]
        return [self._within(wait, bounds, task) for wait in waits]

    def _within(self, wait, bounds, task):
        """The wait with the frames within the block."""
        names = [(frame.file, frame.function) for frame in wait.frames]
        frames = bounds.within(wait.frames)
        if not self._left.isdisjoint(names[: len(frames)]):
            raise CannotWatchError(_OVERLAP)
        is_beside = task is not None and bounds.has_all(wait.frames) and name_of(task) not in names
        why = wait.why + ", while the block was suspended" if is_beside else wait.why
        return wait._replace(frames=frames, why=why)


def _drop_closed():
    """Drops the closed blocks that are the last; the texts of the first of them."""
    texts = None
    while _THREAD.blocks and _THREAD.blocks[-1]._is_closed:
        ended = _native.end()
        texts = ended if texts is None else texts
        _THREAD.blocks.pop()
    if not _THREAD.blocks:
        _give_backward()
    return texts


def _take_backward():
    """PyTorch has the backward pass done by threads of its own, unless it is told not to. Their waits would be nobody's."""
    if _THREAD.backward is None and "torch" in sys.modules:
        _THREAD.backward = sys.modules["torch"].autograd.set_multithreading_enabled(False)
        _THREAD.backward.__enter__()


def _give_backward():
    if not _THREAD.blocks and _THREAD.backward is not None:
        backward, _THREAD.backward = _THREAD.backward, None
        backward.__exit__(None, None, None)
