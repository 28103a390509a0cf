"""Copies on one stream and kernels on another: two device buffers that alternate, and one that does not.

Of `steps` iterations each but the last copies the next iteration's data, and each but the first computes on its own. Each
iteration has host memory with data of its own, so that an overwritten buffer shows.
"""

from ..catalogue import NotApplicable, attempt, produces
from .common import host_memory

# By how much kernels are slowed where wrong elements are counted.
SLOWED = 2e-3
TRIALS = 25
DOUBLE, ONE_WAY = "overlap.double-buffer.", "overlap.one-way."


class Pipeline:
    """The streams, buffers and events of the loop. `slowed` is a spin before each kernel, in seconds."""

    def __init__(self, lab, memory, elements, steps, slowed=0.0):
        torch = lab.torch
        self.lab, self.steps, self.slowed = lab, steps, slowed
        self.transfer, self.compute = lab.stream(0), lab.stream(1)
        self.host = [host_memory(lab, memory, elements).fill_(float(step)) for step in range(steps)]
        self.device = [torch.zeros(elements, device=lab.device) for _ in range(2)]
        self.copied, self.computed = ([torch.cuda.Event() for _ in range(2)] for _ in range(2))
        lab.synchronize()

    def kernel(self, buffer):
        """On the current stream."""
        if self.slowed > 0:
            self.lab.spin(self.slowed)
        return self.device[buffer] * 2.0

    def both_ways(self):
        """A kernel waits for its copy, and a copy for the kernel whose buffer it overwrites."""
        outputs = []
        for step in range(self.steps):
            own, following = step % 2, (step + 1) % 2
            if step > 0:
                with self.lab.torch.cuda.stream(self.compute):
                    self.compute.wait_event(self.copied[own])
                    outputs.append(self.kernel(own))
                    self.computed[own].record(self.compute)
            if step + 1 < self.steps:
                with self.lab.torch.cuda.stream(self.transfer):
                    if step > 1:
                        self.transfer.wait_event(self.computed[following])
                    self.device[following].copy_(self.host[step + 1], non_blocking=True)
                    self.copied[following].record(self.transfer)
        self.lab.synchronize()
        return outputs

    def one_way(self):
        """As the text has it: a kernel waits for all copies enqueued before it, and a copy for nothing."""
        outputs = []
        for step in range(self.steps):
            own, following = step % 2, (step + 1) % 2
            if step > 0:
                with self.lab.torch.cuda.stream(self.compute):
                    outputs.append(self.kernel(own))
            if step + 1 < self.steps:
                with self.lab.torch.cuda.stream(self.transfer):
                    self.device[following].copy_(self.host[step + 1], non_blocking=True)
            self.compute.wait_stream(self.transfer)
        self.lab.synchronize()
        return outputs

    def single(self):
        """One buffer: a copy, a kernel and a synchronize in each iteration."""
        for data in self.host[1:]:
            self.device[0].copy_(data)
            self.kernel(0)
            self.lab.synchronize()

    def copies(self):
        with self.lab.torch.cuda.stream(self.transfer):
            for data in self.host[1:]:
                self.device[0].copy_(data, non_blocking=True)
        self.lab.synchronize()

    def computes(self):
        with self.lab.torch.cuda.stream(self.compute):
            outputs = [self.kernel(step % 2) for step in range(1, self.steps)]
        self.lab.synchronize()
        return outputs

    def wrong(self, outputs):
        """How many elements of the outputs are not twice their iteration's data."""
        counts = [self.lab.torch.count_nonzero(out - 2.0 * step) for step, out in enumerate(outputs, start=1)]
        return float(sum(count.item() for count in counts))

    def slower(self, seconds):
        """The same buffers with slowed kernels."""
        other = object.__new__(Pipeline)
        other.__dict__.update(self.__dict__, slowed=seconds)
        return other


@produces(
    *(f"{DOUBLE}{what}" for what in ("total", "copies", "computes", "wrong")),
    *(f"{ONE_WAY}{what}" for what in ("total", "overwritten", "overwritten-slowed")),
    "overlap.single-buffer.total",
    parameters=["elements", "steps", "memory"], together=["memory"],
)
def double_buffering(lab, p):
    pipeline = Pipeline(lab, p["memory"], p["elements"], p["steps"])

    def slowed():
        lab.spinner()
        slow = pipeline.slower(SLOWED)
        return lab.observed(lambda: pipeline.wrong(slow.one_way()))

    return {
        f"{DOUBLE}total": lab.host(pipeline.both_ways),
        f"{DOUBLE}copies": lab.host(pipeline.copies),
        f"{DOUBLE}computes": lab.host(pipeline.computes),
        f"{DOUBLE}wrong": lab.observed(lambda: pipeline.wrong(pipeline.both_ways())),
        f"{ONE_WAY}total": lab.host(pipeline.one_way),
        f"{ONE_WAY}overwritten": lab.observed(lambda: pipeline.wrong(pipeline.one_way())),
        f"{ONE_WAY}overwritten-slowed": attempt(slowed),
        "overlap.single-buffer.total": lab.host(pipeline.single),
    }


@produces(
    "overlap.buffers.total", parameters=["elements", "steps", "memory", "buffers"], together=["memory", "buffers"])
def buffers(lab, p):
    """What pinned memory brings and what a second buffer brings, apart."""
    if p["buffers"] not in (1, 2):
        raise NotApplicable(f"the loop has one buffer or two, not {p['buffers']}")
    pipeline = Pipeline(lab, p["memory"], p["elements"], p["steps"])
    return {"overlap.buffers.total": lab.host(pipeline.single if p["buffers"] == 1 else pipeline.both_ways)}


@produces(
    *(f"overlap.sweep.{what}" for what in ("total", "copies", "computes", "serial")),
    parameters=["elements", "steps", "memory", "kernel_ratio"],
)
def sweep(lab, p):
    pipeline = slowed_pipeline(lab, p, p.get("memory", "pinned"))
    return {
        "overlap.sweep.total": lab.host(pipeline.both_ways),
        "overlap.sweep.copies": lab.host(pipeline.copies),
        "overlap.sweep.computes": lab.host(pipeline.computes),
        "overlap.sweep.serial": lab.host(pipeline.single),
    }


@produces(
    *(f"overlap.pageable.{what}" for what in ("total", "copies", "computes")),
    parameters=["elements", "steps", "kernel_ratio"],
)
def pageable(lab, p):
    pipeline = slowed_pipeline(lab, p, "pageable")
    return {
        "overlap.pageable.total": lab.host(pipeline.both_ways),
        "overlap.pageable.copies": lab.host(pipeline.copies),
        "overlap.pageable.computes": lab.host(pipeline.computes),
    }


def slowed_pipeline(lab, p, memory):
    """Kernels that are slowed until each lasts `kernel_ratio` times as long as a copy."""
    pipeline = Pipeline(lab, memory, p["elements"], p["steps"])
    copy, kernel = lab.once(("copy and kernel", memory, p["elements"]), lambda: copy_and_kernel(lab, pipeline))
    pipeline.slowed = max(0.0, p["kernel_ratio"] * copy - kernel)
    return pipeline


def copy_and_kernel(lab, pipeline):
    """The seconds of one copy and of one kernel, by events: of several of each the shortest."""
    target, data = pipeline.device[0], pipeline.host[0]
    pair = (lab.events(lambda: target.copy_(data, non_blocking=True)), lab.events(lambda: target * 2.0))
    return [min(case.measure() for _ in range(TRIALS)) for case in pair]
