"""How far the host runs ahead of the device, and what makes it wait."""

from ..catalogue import LeftOut, produces
from ..lab import HOST, LIMIT, Case
from .common import numpy, print_tensor, random_matmul, synchronized, twice


def loop(lab, p):
    for _ in range(p["iters"]):
        b = random_matmul(lab, p["size"])
    return b


@produces("async-frontend.host", parameters=["iters", "size", "library"], warmup=False)
def host(lab, p):
    """A time of the host means something with its library's name alone: only a row of NumPy is PyTorch's neighbour."""
    if not p["library"].startswith("NumPy"):
        raise LeftOut
    library = numpy()

    def region():
        for _ in range(p["iters"]):
            a = library.random.normal(size=(p["size"], p["size"]))
            library.dot(a, a)

    return {"async-frontend.host": lab.host(region)}


@produces("async-frontend.dispatch", "async-frontend.complete", parameters=["iters", "size"])
def device(lab, p):
    return {
        "async-frontend.dispatch": lab.host(lambda: loop(lab, p)),
        "async-frontend.complete": lab.host(synchronized(lab, lambda: loop(lab, p))),
    }


@produces("async-frontend.same.a", "async-frontend.same.b", parameters=["iters", "size"])
def same(lab, p):
    return twice(lab, "async-frontend", synchronized(lab, lambda: loop(lab, p)))


def small_graph(lab):
    x, y = (lab.torch.ones((1, 2), device=lab.device) for _ in range(2))
    return x * y + 2


@produces("async-frontend.graph.value", parameters=["element"], together=["element"])
def graph_value(lab, p):
    return {"async-frontend.graph.value": lab.observed(lambda: small_graph(lab)[0, p["element"]].item())}


@produces("async-frontend.graph.print")
def graph_print(lab, p):
    return {"async-frontend.graph.print": lab.read(lambda: small_graph(lab), print_tensor)}


@produces(
    "async-frontend.graph.one-stream", "async-frontend.graph.two-streams", parameters=["branch", "size", "chain"],
    together=["branch", "size"],
)
def branches(lab, p):
    """Two chains of matmuls. A gate is closed while the host launches them: the device is timed, not how fast it is fed."""
    torch, size = lab.torch, p["size"]
    first, second = lab.stream(0), lab.stream(1)
    # Scaled, so that a long chain stays within the range of the type.
    w, v = (torch.randn(size, size, device=lab.device) * size**-0.5 for _ in range(2))
    lab.synchronize()

    def launch(stream):
        x, y = w, v
        for _ in range(p["chain"]):
            with torch.cuda.stream(first):
                x = torch.mm(x, w)
            with torch.cuda.stream(stream):
                y = torch.mm(y, v)
        return x, y

    def case(stream):
        # Memory is allocated and code loaded before a gate closes.
        launch(stream)
        lab.synchronize()

        def measure():
            held = [first] if stream is first else [first, stream]
            with lab.gate().closed(held, LIMIT) as gate:
                made = launch(stream)
                opened = lab.host(lambda: (gate.open(), lab.synchronize())).measure()
                late = gate.late
            del made
            if late:
                raise RuntimeError(f"launching took longer than the gate may stay closed, {LIMIT} s")
            return opened

        return Case(HOST, measure)

    return {"async-frontend.graph.one-stream": case(first), "async-frontend.graph.two-streams": case(second)}


READS = {
    "print": lambda y: print_tensor(y[0, 0]),
    "item": lambda y: y[0, 0].item(),
    "copy": lambda y: y.cpu(),
    "branch": lambda y: bool((y > 0).any()),
}


@produces(
    *(f"async-frontend.barriers.{name}.{state}" for name in READS for state in ("pending", "ready")),
    parameters=["iters", "size"],
)
def synchronization_points(lab, p):
    return {
        f"async-frontend.barriers.{name}.{state}": lab.read(lambda: loop(lab, p), read, state == "ready")
        for name, read in READS.items()
        for state in ("pending", "ready")
    }


@produces("async-frontend.throughput", parameters=["every", "steps", "size"], together=["every"])
def throughput(lab, p):
    torch, steps, every = lab.torch, p["steps"], p["every"]
    x, w = (torch.randn(p["size"], p["size"], device=lab.device) for _ in range(2))

    def region():
        losses = []
        for step in range(1, steps + 1):
            losses.append(torch.mm(x, w).mean())
            if len(losses) == every or step == steps:
                # A single loss is read as it is: a stack of one would add to the cost of the read.
                (losses[0] if len(losses) == 1 else torch.stack(losses).mean()).item()
                losses.clear()

    name = "async-frontend.throughput"
    return {name: lab.host(region, p.iterations(name))}


@produces(
    *(f"async-frontend.model.{name}" for name in ("t1", "t2", "t3", "queued", "serial")),
    parameters=["size", "operations"], together=["operations"],
)
def model(lab, p):
    """The times of one matmul where a row states no number of operations, and else the totals of so many."""
    torch = lab.torch
    x, w = (torch.randn(p["size"], p["size"], device=lab.device) for _ in range(2))

    def many(count):
        for _ in range(count):
            torch.mm(x, w)

    if "operations" not in p.parameters:
        iterations = {name: p.iterations(f"async-frontend.model.{name}") for name in ("t1", "t2")}
        return {
            "async-frontend.model.t1": lab.host(lambda: many(iterations["t1"]), iterations["t1"]),
            "async-frontend.model.t2": lab.events(lambda: many(iterations["t2"]), iterations["t2"]),
            "async-frontend.model.t3": lab.read(lambda: torch.mm(x, w), lambda y: y[0, 0].item(), ready=True),
        }
    count = p["operations"]

    def queued():
        many(count - 1)
        return torch.mm(x, w)[0, 0].item()

    def serial():
        for _ in range(count):
            torch.mm(x, w)[0, 0].item()

    return {"async-frontend.model.queued": lab.host(queued), "async-frontend.model.serial": lab.host(serial)}
