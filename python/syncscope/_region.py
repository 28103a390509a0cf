"""Blocks that may not wait."""
import sys
from contextlib import nullcontext

from . import _allow, _native
from ._waits import WaitError, parse


class no_wait:  # noqa: N801, a block is written by it
    """A block of the thread that may not wait for the GPU.

    `allow` holds pairs of a pattern and a reason. At its end the block raises a `WaitError`, unless it is left by an exception of its
    own. Where there is no GPU it raises a `NoCudaError` at its begin; where the driver's calls cannot be seen, a
    `CannotWatchError`.
    """

    def __init__(self, *, allow=()):
        self._entries = _allow.checked(allow)
        self._outside = None

    def __enter__(self):
        self._backward = _backward_in_this_thread()
        self._backward.__enter__()
        try:
            _native.begin()
        except BaseException:
            self._backward.__exit__(None, None, None)
            raise
        self._outside = _depth(sys._getframe(1)) - 1
        return self

    def __exit__(self, kind, error, trace):
        texts = _native.end()
        self._backward.__exit__(None, None, None)
        if kind is None:
            waits = [parse(text, self._outside) for text in texts]
            bad = [wait for wait in waits if not _allow.is_allowed(wait, self._entries)]
            if bad:
                raise WaitError(bad)
        return False


def _depth(frame):
    depth = 0
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    return depth


def _backward_in_this_thread():
    """PyTorch has the backward pass done by threads of its own, unless it is told not to. Their waits would be nobody's."""
    torch = sys.modules.get("torch")
    return torch.autograd.set_multithreading_enabled(False) if torch else nullcontext()
