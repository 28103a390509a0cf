"""What a synchronization costs in a loop, and what a clock without one shows."""

from ..catalogue import produces
from .common import random_matmul, synchronized, twice

# Elements of the tensor of a small launch.
SMALL = 1024


@produces(
    "synchronize.timing.without", "synchronize.timing.with", "synchronize.timing.events", parameters=["size"])
def timing(lab, p):
    def iterate():
        return random_matmul(lab, p["size"])

    return {
        "synchronize.timing.without": lab.host(iterate),
        "synchronize.timing.with": lab.host(synchronized(lab, iterate)),
        "synchronize.timing.events": lab.events(iterate),
    }


@produces(
    "synchronize.loop.each", "synchronize.loop.enqueue", "synchronize.loop.complete", parameters=["size", "iters"])
def loops(lab, p):
    def looped(each, end):
        def region():
            for _ in range(p["iters"]):
                random_matmul(lab, p["size"])
                if each:
                    lab.synchronize()
            if end:
                lab.synchronize()

        return lab.host(region)

    return {
        "synchronize.loop.each": looped(True, False),
        "synchronize.loop.enqueue": looped(False, False),
        "synchronize.loop.complete": looped(False, True),
    }


@produces("synchronize.same.a", "synchronize.same.b", parameters=["size"])
def same(lab, p):
    return twice(lab, "synchronize", synchronized(lab, lambda: random_matmul(lab, p["size"])))


@produces(
    "synchronize.clock.without", "synchronize.clock.with", parameters=["spin_seconds"], together=["spin_seconds"])
def clocks(lab, p):
    """A small launch with a spin appended: what of its length a clock of the host shows."""
    x = lab.torch.zeros(SMALL, device=lab.device)

    def launch():
        x.add_(1)
        # Without a length the kernel is there all the same: the launches do not differ.
        lab.spin(p["spin_seconds"])

    return {
        "synchronize.clock.without": lab.host(launch),
        "synchronize.clock.with": lab.host(synchronized(lab, launch)),
    }
