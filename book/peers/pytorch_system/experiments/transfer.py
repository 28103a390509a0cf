"""Copies between host memory and the device, and what host memory costs."""

from ..catalogue import NotApplicable, attempt, produces
from ..lab import HOST, Case
from .common import host_memory, synchronized, twice

FLOAT = 4


@produces(
    *(f"overlap.transfer.{way}.{what}" for way in ("h2d", "d2h") for what in ("free", "done")),
    parameters=["memory", "mode", "bytes"], together=["memory", "mode"],
)
def copies(lab, p):
    elements = p["bytes"] // FLOAT
    on_host = host_memory(lab, p["memory"], elements)
    on_device = lab.torch.zeros(elements, device=lab.device)
    if p["mode"] not in ("blocking", "non-blocking"):
        raise NotApplicable(f"a copy in PyTorch is blocking or non-blocking, not {p['mode']}")
    non_blocking = p["mode"] == "non-blocking"
    cases = {}
    for way, target, source in (("h2d", on_device, on_host), ("d2h", on_host, on_device)):
        def copy(target=target, source=source):
            target.copy_(source, non_blocking=non_blocking)

        cases[f"overlap.transfer.{way}.free"] = lab.host(copy)
        cases[f"overlap.transfer.{way}.done"] = lab.host(synchronized(lab, copy))
    return cases


@produces("overlap.same.a", "overlap.same.b", parameters=["bytes"])
def same(lab, p):
    on_host = host_memory(lab, "pageable", p["bytes"] // FLOAT)
    on_device = lab.torch.zeros(p["bytes"] // FLOAT, device=lab.device)
    return twice(lab, "overlap", synchronized(lab, lambda: on_device.copy_(on_host)))


@produces(
    "overlap.transfer.d2h.new-array", "overlap.transfer.pageable", "overlap.transfer.pin", parameters=["bytes"])
def host_buffers(lab, p):
    """What host memory costs."""
    elements = p["bytes"] // FLOAT
    x = lab.torch.zeros(elements, device=lab.device)
    return {
        "overlap.transfer.d2h.new-array": lab.host(x.cpu),
        "overlap.transfer.pageable": lab.host(lambda: lab.torch.zeros(elements)),
        "overlap.transfer.pin": attempt(lambda: pinned_buffer(lab, elements)),
    }


def pinned_buffer(lab, elements):
    """PyTorch keeps freed pinned memory: its cache is emptied before each sample, so that the driver allocates."""
    empty_cache = getattr(lab.torch._C, "_host_emptyCache", None)
    if empty_cache is None:
        raise NotApplicable("this PyTorch keeps freed pinned memory in a cache that cannot be emptied")
    allocation = lab.host(lambda: lab.torch.zeros(elements, pin_memory=True))

    def measure():
        empty_cache()
        return allocation.measure()

    return Case(HOST, measure)


@produces("overlap.transfer.host-read", parameters=["memory", "bytes"])
def host_read(lab, p):
    raise NotApplicable("a loop of one thread over host memory is no call of PyTorch")
