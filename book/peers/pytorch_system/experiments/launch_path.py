"""What launching the same work one by one, batched and as a graph costs, and how many launches the queue takes."""

import threading

from .. import affinity
from ..catalogue import produces
from ..lab import LIMIT
from .common import synchronized, twice

PATHS = ("one-by-one.complete", "batched.host-free", "batched.complete", "graph.host-free", "graph.complete", "graph.capture")

# The most launches behind a closed gate; where none blocks, this is the depth.
MOST = 4096
# A launch that takes longer than this blocks. It is far more than a launch costs.
BLOCKED = 0.05
# Fewer launches than half of any queue that was seen.
FEW = 400


@produces(*(f"launch-path.{path}" for path in PATHS), parameters=["operations", "elements"], together=["operations"])
def paths(lab, p):
    torch = lab.torch
    x = torch.zeros(p["elements"], device=lab.device)

    def batched():
        for _ in range(p["operations"]):
            x.add_(1)

    def captured():
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            batched()
        return graph

    def several(name, once):
        count = p.iterations(f"launch-path.{name}")

        def region():
            for _ in range(count):
                once()

        return lab.host(region, count)

    def one_by_one():
        for _ in range(p["operations"]):
            x.add_(1)
            lab.synchronize()

    batched()
    lab.synchronize()
    graph = captured()
    return {
        "launch-path.one-by-one.complete": several("one-by-one.complete", one_by_one),
        "launch-path.batched.host-free": lab.host(batched),
        "launch-path.batched.complete": several("batched.complete", synchronized(lab, batched)),
        "launch-path.graph.host-free": lab.host(graph.replay),
        "launch-path.graph.complete": several("graph.complete", synchronized(lab, graph.replay)),
        "launch-path.graph.capture": lab.host(lambda: (captured(), lab.synchronize())[0]),
    }


@produces("launch-path.same.a", "launch-path.same.b", parameters=["operations", "elements"])
def same(lab, p):
    x = lab.torch.zeros(p["elements"], device=lab.device)

    def batched():
        for _ in range(p["operations"]):
            x.add_(1)

    return twice(lab, "launch-path", synchronized(lab, batched))


@produces("launch-path.queue.depth", parameters=["elements"])
def depth(lab, p):
    """After how many launches behind a closed gate a further one blocks. A launch blocks that has not come back for a
    while; the gate is opened then."""
    stream = lab.stream()
    with lab.torch.cuda.stream(stream):
        x = lab.torch.zeros(p["elements"], device=lab.device)
        x.add_(1)
    lab.synchronize()

    def look():
        progress = Progress()
        with lab.torch.cuda.stream(stream), lab.gate().closed([stream], LIMIT) as gate:
            watcher = threading.Thread(target=progress.watch, args=(gate,), daemon=True)
            with affinity.elsewhere():
                watcher.start()
            try:
                for _ in range(MOST):
                    x.add_(1)
                    progress.launches += 1
                    if progress.blocked is not None:
                        break
            finally:
                progress.ended.set()
                watcher.join()
            late = gate.late
        if late:
            raise RuntimeError(f"{progress.launches} launches took longer than the gate may stay closed, {LIMIT} s")
        return float(MOST if progress.blocked is None else progress.blocked)

    return {"launch-path.queue.depth": lab.observed(look)}


class Progress:
    """How many launches have come back, and after how many one blocked."""

    def __init__(self):
        self.launches, self.blocked = 0, None
        self.ended = threading.Event()

    def watch(self, gate):
        before = 0
        while not self.ended.wait(BLOCKED):
            if self.launches == before:
                self.blocked = before
                gate.open()
                return
            before = self.launches


@produces("launch-path.queue.enqueue", parameters=["elements"])
def enqueue(lab, p):
    name = "launch-path.queue.enqueue"
    x = lab.torch.zeros(p["elements"], device=lab.device)
    launches = p.iterations(name, FEW)

    def region():
        for _ in range(launches):
            x.add_(1)

    return {name: lab.host(region, launches)}
