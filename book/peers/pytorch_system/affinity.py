"""The processor on which the thread of the host measures, as `report` keeps its own: the last one that the process may use,
where there are four or more. A thread inherits the processors of the thread that starts it, so what a measurement starts is
started `elsewhere`. Only Linux offers this; on other systems nothing is kept.
"""

import contextlib
import os
import threading

ENOUGH = 4

_before = threading.local()


def _offered():
    return hasattr(os, "sched_getaffinity")


@contextlib.contextmanager
def kept():
    """Keeps the calling thread on one processor within the block."""
    allowed = os.sched_getaffinity(0) if _offered() else set()
    if len(allowed) < ENOUGH or getattr(_before, "processors", None):
        yield
        return
    os.sched_setaffinity(0, {max(allowed)})
    _before.processors = allowed
    try:
        yield
    finally:
        _before.processors = None
        os.sched_setaffinity(0, allowed)


@contextlib.contextmanager
def elsewhere():
    """What is started within the block may run on all processors of the process."""
    allowed = getattr(_before, "processors", None)
    if not allowed:
        yield
        return
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, allowed)
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)
