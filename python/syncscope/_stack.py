"""Stacks of Python: which frames of a wait lie within its block.

The library has the frames of a wait as texts, since no Python runs there. A block knows those around its begin and its end as they
are. So a frame that was around both is told from another one of the same function, and what lies beyond it is outside.
"""
import inspect

# `faulthandler` writes so many frames, the innermost, and not in each version that there are more.
MOST_FRAMES = 100
_COROUTINE = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR
_RESUMED = _COROUTINE | inspect.CO_GENERATOR


def frames_of(frame):
    """A frame and those around it, the innermost first."""
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def is_resumed(frame):
    """Whether it is left and entered again: that of a generator or a coroutine."""
    return bool(frame.f_code.co_flags & _RESUMED)


def task_of(frames):
    """The coroutine that an event loop resumes for this code, None where there is no loop."""
    task = None
    for frame in frames:
        if frame.f_code.co_flags & _COROUTINE:
            task = frame
        elif task is not None and not is_resumed(frame):
            break
    return task


def name_of(frame):
    return frame.f_code.co_filename, frame.f_code.co_name


class Bounds:
    """Where a block begins in the stacks of its waits, by the frames around its begin and its end."""

    def __init__(self, opened, closed):
        count = 0
        for frame, same in zip(reversed(opened), reversed(closed)):
            if frame is not same:
                break
            count += 1
        # Of these, a generator may have been left in between.
        while count and is_resumed(opened[-count]):
            count -= 1
        inner, outer = opened[: len(opened) - count], opened[len(opened) - count :]
        self._names = [name_of(frame) for frame in opened]
        # These were in one and the same call during the block.
        self._lines = [None] * (len(inner) + 1) + [frame.f_lineno for frame in outer[1:]]
        # The frame of the block is one of these: a generator as long as it runs.
        self._begins = [place for place, frame in enumerate(inner) if is_resumed(frame) and frame in closed] + [len(inner)]

    @staticmethod
    def has_all(frames):
        """Whether these are all of a stack."""
        return 0 < len(frames) < MOST_FRAMES

    def within(self, frames):
        """Those of a wait's frames that lie within the block, and the frame that has it."""
        for begin in self._begins:
            at = self._find(frames, begin)
            if at is not None:
                return frames[: at + 1]
        return frames

    def _find(self, frames, begin):
        """Where the frames are those of the block from this one on."""
        expected = list(zip(self._names[begin:], self._lines[begin:]))
        places = [len(frames) - len(expected)] if self.has_all(frames) else range(len(frames))
        for place in places:
            pairs = zip(frames[max(place, 0) :], expected)
            if place >= 0 and all(((f.file, f.function), f.line if line else None) == (name, line) for f, (name, line) in pairs):
                return place
        return None
