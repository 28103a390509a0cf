"""What PyTorch's profiler recorded: the calls of the CUDA runtime, and kernels and copies on the device.

Every trial is marked by a range with a name of its own. To a trial belong the calls that its thread made within the range,
and the kernels and copies that these calls launched, found by their correlation numbers.
"""

import json
import os
import tempfile
from dataclasses import dataclass

RUNTIME = ("cuda_runtime", "cuda_driver")
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


class NotRecorded(Exception):
    """The profiler did not record what a row is judged by."""


@dataclass(frozen=True)
class Span:
    """A call or a piece of work, in seconds since the trace began."""

    kind: str
    name: str
    start: float
    end: float
    thread: object
    stream: object
    correlation: object


@dataclass(frozen=True)
class Trial:
    """The calls of one trial, and the work on the device that they launched; both by their start."""

    calls: list
    work: list

    def called(self, *names):
        """The calls with one of these names; the driver's and versioned names count as well (`cudaLaunchKernel_v7000`)."""
        return [call for call in self.calls if call.name.split("_v")[0] in names]

    def launched(self, kind):
        return [span for span in self.work if span.kind == kind]


class Recorder:
    """Records trials with the profiler of PyTorch."""

    def __init__(self, torch):
        self.torch = torch
        self.count = 0

    def session(self):
        activity = self.torch.profiler.ProfilerActivity
        return self.torch.profiler.profile(activities=[activity.CPU, activity.CUDA])

    def act(self, case):
        """Runs a case in a range of its own; the number of its trial."""
        self.count += 1
        with self.torch.profiler.record_function(_mark(self.count)):
            case.act()
        return self.count

    @staticmethod
    def trials(session):
        """What was recorded, by the numbers of the trials."""
        handle, path = tempfile.mkstemp(suffix=".json")
        os.close(handle)
        try:
            session.export_chrome_trace(path)
            with open(path, encoding="utf-8", errors="replace") as file:
                return trials_of(json.load(file)["traceEvents"])
        finally:
            os.unlink(path)


def _mark(number):
    return f"trial {number}"


def trials_of(events):
    """The trials in the events of a trace."""
    calls, marks, work = [], {}, {}
    events = [event for event in events if event.get("ph") == "X" and "ts" in event]
    # Counted from the first, so that no digit is lost.
    origin = min((float(event["ts"]) for event in events), default=0.0)
    for event in events:
        kind = event.get("cat")
        span = _span(kind, event, origin)
        if kind in RUNTIME:
            calls.append(span)
        elif kind in DEVICE:
            work.setdefault(span.correlation, []).append(span)
        elif kind == "user_annotation" and span.name.startswith("trial "):
            marks[int(span.name.removeprefix("trial "))] = span
    if not calls:
        raise NotRecorded("the profiler recorded no call of CUDA: PyTorch was built without CUPTI, or it may not trace here")
    calls.sort(key=lambda call: call.start)
    trials = {}
    for number, mark in marks.items():
        own = [c for c in calls if c.thread == mark.thread and mark.start <= c.start and c.end <= mark.end]
        launched = [span for call in own for span in work.get(call.correlation, [])]
        trials[number] = Trial(own, sorted(launched, key=lambda span: span.start))
    return trials


def _span(kind, event, origin):
    arguments = event.get("args") or {}
    start = (float(event["ts"]) - origin) / 1e6
    return Span(
        kind, str(event.get("name", "")), start, start + float(event.get("dur", 0)) / 1e6, (event.get("pid"), event.get("tid")),
        arguments.get("stream"), arguments.get("correlation"),
    )


def union(spans):
    """The seconds that at least one of these intervals covers; pairs of a start and an end."""
    covered, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        covered += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return covered
