"""Which calls wait for the work before them: whether they come back while a closed gate holds their stream, and for how
long they block the host behind a kernel of known length."""

from ..catalogue import NotApplicable, attempt, produces
from .common import host_memory, numpy, print_tensor

PREFIX = "overlap.implicit."
FLOAT = 4

# Of the tensor `f.x` or of the host memory `f.host`, on the current stream.
CALLS = {
    "launch": lambda f: f.x + 1,
    "view": lambda f: f.x[7],
    "item": lambda f: f.x[7].item(),
    "copy": lambda f: f.x.cpu(),
    "array": lambda f: f.x.cpu().numpy(),
    "print": lambda f: print_tensor(f.x[7]),
    "any": lambda f: bool(f.x.any()),
    "nonzero": lambda f: f.lab.torch.nonzero(f.x),
    "rows-from-host": lambda f: f.x[f.host_rows],
    "rows-on-device": lambda f: f.x[f.device_rows],
    "sum": lambda f: f.x.sum(),
    "upload": lambda f: f.lab.torch.tensor([1.0] * 16, device=f.lab.device),
    "from-pageable": lambda f: f.host.to(f.lab.device, non_blocking=f.non_blocking),
    "from-pinned": lambda f: f.host.to(f.lab.device, non_blocking=f.non_blocking),
    "to-pageable": lambda f: f.host.copy_(f.x, non_blocking=f.non_blocking),
    "to-pinned": lambda f: f.host.copy_(f.x, non_blocking=f.non_blocking),
}

PARAMETERS = ["bytes", "mode", "origin", "busy_seconds"]


class Fixture:
    """A tensor on the device, and what a call needs beside it."""

    def __init__(self, lab, name, p):
        torch, elements = lab.torch, p["bytes"] // FLOAT
        self.lab, self.host = lab, None
        mode = p.get("mode", "non-blocking")
        if mode not in ("blocking", "non-blocking"):
            raise NotApplicable(f"a copy in PyTorch is blocking or non-blocking, not {mode}")
        self.non_blocking = mode == "non-blocking"
        if name == "array":
            numpy()
        if name.startswith(("from-", "to-")):
            self.host = host_memory(lab, name.split("-")[1], elements)
        self.host_rows = torch.tensor([2, 0, 1])
        with torch.cuda.stream(lab.stream()):
            self.device_rows = self.host_rows.to(lab.device)
            self.x = torch.randn(max(elements, 8), device=lab.device)
            if "origin" in p.parameters:
                uploaded = host_memory(lab, p["origin"], elements)
                self.x = uploaded.to(lab.device, non_blocking=p["origin"] == "pinned")
            elif self.host is not None:
                self.x = torch.randn(elements, device=lab.device)
        lab.synchronize()


@produces(*(f"{PREFIX}{name}.blocks" for name in CALLS), parameters=PARAMETERS, together=["mode", "origin"])
def blocks(lab, p):
    def case(name):
        fixture = Fixture(lab, name, p)
        return lab.blocks(lambda: CALLS[name](fixture))

    return {f"{PREFIX}{name}.blocks": attempt(lambda: case(name)) for name in wanted(p, "blocks")}


@produces(*(f"{PREFIX}{name}.stall" for name in CALLS), parameters=PARAMETERS, together=["mode", "origin", "bytes"])
def stall(lab, p):
    def case(name):
        fixture = Fixture(lab, name, p)

        def busy():
            lab.spin(p["busy_seconds"])
            return fixture

        return lab.read(busy, CALLS[name], stream=lab.stream())

    return {f"{PREFIX}{name}.stall": attempt(lambda: case(name)) for name in wanted(p, "stall")}


def wanted(p, what):
    """The names of the calls that rows of the plan ask for: a fixture is made for these alone."""
    ids = {row.id for row in p.rows}
    return [name for name in CALLS if f"{PREFIX}{name}.{what}" in ids]
