"""The resolution and cost of the clocks as Python sees them, and what a small launch costs."""

import time

from ..catalogue import NotApplicable, produces
from ..lab import HOST, Case
from .common import twice

READINGS, STEPS, SMALL = 1000, 100, 1024


@produces("self-audit.timer.resolution", "self-audit.timer.cost", "self-audit.empty-loop", parameters=["calls"])
def clocks(lab, p):
    def step():
        start = time.perf_counter()
        while True:
            seconds = time.perf_counter() - start
            if seconds > 0:
                return seconds

    def readings():
        for _ in range(READINGS):
            time.perf_counter()

    def empty():
        for _ in range(p["calls"]):
            pass

    return {
        "self-audit.timer.resolution": Case(HOST, lambda: min(step() for _ in range(STEPS))),
        "self-audit.timer.cost": lab.host(readings, READINGS),
        "self-audit.empty-loop": lab.host(empty, p["calls"]),
    }


@produces(
    "self-audit.event.cost", "self-audit.event.timing-cost", "self-audit.event.gap", "self-audit.synchronize.device",
    "self-audit.synchronize.stream", parameters=["calls"],
)
def events(lab, p):
    stream = lab.current()

    def repeated(call):
        def region():
            for _ in range(p["calls"]):
                call()

        return lab.host(region, p["calls"])

    return {
        "self-audit.event.cost": repeated(lab.torch.cuda.Event().record),
        "self-audit.event.timing-cost": repeated(lab.timing_events()[0].record),
        "self-audit.event.gap": lab.events(lambda: None),
        "self-audit.synchronize.device": repeated(lab.synchronize),
        "self-audit.synchronize.stream": repeated(stream.synchronize),
    }


@produces("self-audit.same.a", "self-audit.same.b", parameters=["calls"])
def same(lab, p):
    x = lab.torch.zeros(SMALL, device=lab.device)

    def region():
        for _ in range(p["calls"]):
            x.add_(1)

    return twice(lab, "self-audit", region)


@produces(
    "self-audit.enqueue.in-place", "self-audit.enqueue.allocating", "self-audit.enqueue.raw", parameters=["calls"])
def launches(lab, p):
    x = lab.torch.zeros(SMALL, device=lab.device)

    def in_place():
        for _ in range(p["calls"]):
            x.add_(1)

    def allocating():
        for _ in range(p["calls"]):
            x + 1

    return {
        "self-audit.enqueue.in-place": lab.host(in_place, p["calls"]),
        "self-audit.enqueue.allocating": lab.host(allocating, p["calls"]),
        "self-audit.enqueue.raw": NotApplicable("a bare launch of the driver is not a call of PyTorch"),
    }
