"""Peak rates measured: copies, matmuls, transfers."""

from ..catalogue import NotApplicable, produces
from .common import dtype_of, host_memory, operands, synchronized, twice

FLOAT = 4


def repeated(lab, p, call):
    """A loop of calls on the current stream, timed by events; a sample is one call."""

    def region():
        for _ in range(p["iterations"]):
            call()

    return lab.events(region, p["iterations"])


@produces("ceilings.copy.time", parameters=["bytes", "by", "iterations"], together=["bytes", "by", "iterations"])
def copy(lab, p):
    x, y = (lab.torch.ones(p["bytes"] // FLOAT, device=lab.device) for _ in range(2))
    calls = {"copy": lambda: y.copy_(x), "kernel": lambda: x + 1}
    if p["by"] not in calls:
        raise NotApplicable(f"PyTorch copies by {' or '.join(calls)}, not by {p['by']}")
    return {"ceilings.copy.time": repeated(lab, p, calls[p["by"]])}


@produces(
    "ceilings.matmul.time", parameters=["dtype", "size", "iterations"], together=["dtype", "size", "iterations"])
def matmul(lab, p):
    x, w = operands(lab, p["size"], dtype_of(lab, p["dtype"]))
    return {"ceilings.matmul.time": repeated(lab, p, lambda: lab.torch.mm(x, w))}


@produces(
    "ceilings.h2d.time", "ceilings.d2h.time", parameters=["bytes", "memory", "iterations"],
    together=["bytes", "iterations"])
def transfers(lab, p):
    on_host = host_memory(lab, p["memory"], p["bytes"] // FLOAT)
    on_device = lab.torch.zeros(p["bytes"] // FLOAT, device=lab.device)
    return {
        "ceilings.h2d.time": repeated(lab, p, lambda: on_device.copy_(on_host, non_blocking=True)),
        "ceilings.d2h.time": repeated(lab, p, lambda: on_host.copy_(on_device, non_blocking=True)),
    }


@produces("ceilings.same.a", "ceilings.same.b", parameters=["bytes", "iterations"])
def same(lab, p):
    x = lab.torch.ones(p["bytes"] // FLOAT, device=lab.device)

    def copies():
        for _ in range(p["iterations"]):
            x + 1

    return twice(lab, "ceilings", synchronized(lab, copies))
