"""What runs beside the host: random tensors, additions, and a call whose result's shape depends on the values."""

from ..catalogue import LeftOut, produces
from .common import synchronized


def three_random_tensors(lab, elements, place):
    return [lab.torch.randn(elements, device=place) for _ in range(3)]


@produces("overlap.execution.host", parameters=["elements", "library"], warmup=False)
def execution_by_host(lab, p):
    """A time of the host means something with its library's name alone."""
    if not p["library"].startswith("PyTorch"):
        raise LeftOut
    return {"overlap.execution.host": lab.host(lambda: three_random_tensors(lab, p["elements"], "cpu"))}


@produces("overlap.execution.dispatch", "overlap.execution.complete", parameters=["elements"])
def execution(lab, p):
    def launch():
        return three_random_tensors(lab, p["elements"], lab.device)

    return {
        "overlap.execution.dispatch": lab.host(launch),
        "overlap.execution.complete": lab.host(synchronized(lab, launch)),
    }


@produces("overlap.finish.host-free", "overlap.finish.complete", parameters=["elements", "adds"])
def finish(lab, p):
    def launch():
        x = lab.torch.randn(p["elements"], device=lab.device)
        for _ in range(p["adds"]):
            x + 1

    return {
        "overlap.finish.host-free": lab.host(launch),
        "overlap.finish.complete": lab.host(synchronized(lab, launch)),
    }


@produces(*(f"overlap.nonzero.{what}" for what in ("enqueue", "stall", "whole", "alone")), parameters=["elements", "scales"])
def nonzero(lab, p):
    torch = lab.torch
    x = torch.randn(p["elements"], device=lab.device)

    def scaled():
        z = x
        for _ in range(p["scales"]):
            z = z * 1.000001
        return z

    return {
        "overlap.nonzero.enqueue": lab.host(scaled),
        "overlap.nonzero.stall": lab.read(scaled, torch.nonzero),
        "overlap.nonzero.whole": lab.host(lambda: torch.nonzero(scaled())),
        "overlap.nonzero.alone": lab.read(scaled, torch.nonzero, ready=True),
    }
