"""What a launch costs through PyTorch: an operation on one element, and graphs of such operations."""

from ..catalogue import produces
from .common import twice


def one(lab):
    return lab.torch.zeros(1, device=lab.device)


def captured(lab, operations):
    """A graph of so many additions to one element, launched once."""
    torch, x = lab.torch, one(lab)
    x.add_(1)
    lab.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(operations):
            x.add_(1)
    graph.replay()
    lab.synchronize()
    return graph, x


def many(launch, count):
    def region():
        for _ in range(count):
            launch()

    return region


@produces("layers.operation", "layers.graph", parameters=["launches"])
def launches(lab, p):
    count, x = p["launches"], one(lab)
    # The memory of a graph lives as long as what was captured on it.
    graph, kept = captured(lab, 1)

    def replay():
        graph.replay()
        return kept

    return {
        "layers.operation": lab.host(many(lambda: x.add_(1), count), count),
        "layers.graph": lab.host(many(replay, count), count),
    }


@produces("layers.graph.launch", parameters=["nodes"], together=["nodes"])
def graphs(lab, p):
    graph, kept = captured(lab, p["nodes"])

    def replay():
        graph.replay()
        return kept

    return {"layers.graph.launch": lab.host_singly(replay, p.iterations("layers.graph.launch"))}


@produces("layers.same.a", "layers.same.b", parameters=["launches"])
def same(lab, p):
    x = one(lab)
    return twice(lab, "layers", many(lambda: x.add_(1), p["launches"]))
