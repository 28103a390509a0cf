"""The processor on which the thread of the host measures, as `report` keeps its own.

It is one of those that the process may use, where there are four or more; at first the last one, until the thread is told to
stay on another. A thread inherits the processors of the thread that starts it, so what a measurement starts is started
`elsewhere`: not on its processor, nor on one that shares a core with it, where enough others are left. Only Linux offers this;
on other systems nothing is kept.
"""

import contextlib
import os
import threading

ENOUGH = 4

_kept = threading.local()


def _offered():
    return hasattr(os, "sched_getaffinity")


def _core_of(own):
    """The processors of the core of `own`, as far as the system tells."""
    try:
        with open(f"/sys/devices/system/cpu/cpu{own}/topology/thread_siblings_list", encoding="ascii") as file:
            return listed(file.read())
    except (OSError, ValueError):
        return set()


def listed(text):
    """The numbers of a list such as `3,35` or `2-3`."""
    found = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def others(allowed, own, core):
    """Those that share no core with `own`; all where too few would be left."""
    left = allowed - core - {own}
    return left if len(left) >= ENOUGH else allowed


def has_own():
    """Whether the calling thread is kept on a processor of its own."""
    return bool(getattr(_kept, "others", None))


def kept_on():
    """The processor that the calling thread is kept on, which it has."""
    return _kept.own


def choices():
    """The processors that the calling thread, which is kept on one, may stay on; the likeliest first."""
    return sorted(_kept.allowed, reverse=True)


def stay_on(own):
    """Keeps the calling thread, which is kept on a processor, on this one; where the system refuses, it stays where it is."""
    try:
        os.sched_setaffinity(0, {own})
    except OSError:
        return
    _kept.own, _kept.others = own, others(_kept.allowed, own, _core_of(own))


@contextlib.contextmanager
def kept():
    """Keeps the calling thread on one processor within the block."""
    allowed = os.sched_getaffinity(0) if _offered() else set()
    if len(allowed) < ENOUGH or has_own():
        yield
        return
    _kept.allowed = allowed
    stay_on(max(allowed))
    try:
        yield
    finally:
        _kept.others = None
        os.sched_setaffinity(0, allowed)


@contextlib.contextmanager
def elsewhere():
    """What is started within the block may run on the other processors of the process."""
    if not has_own():
        yield
        return
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, _kept.others)
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)
