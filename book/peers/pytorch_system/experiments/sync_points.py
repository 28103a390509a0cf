"""What explicit and implicit synchronization costs, for large and small matmuls."""

from ..catalogue import NotApplicable, attempt, produces
from ..lab import EVENTS, Case, RecordedCase
from ..recording import NotRecorded, union
from .common import dtype_of, numpy, operands, print_tensor, synchronized, twice


def looped(lab, x, w, iters, forced):
    def region():
        for _ in range(iters):
            lab.torch.mm(x, w)
            if forced:
                lab.synchronize()

    return region


def matmul_loops(kernel, together=()):
    """The rows of a loop without and with a synchronize in each iteration."""
    names = [f"sync-points.{kernel}.{what}" for what in ("async", "forced")]

    def make(lab, p):
        x, w = operands(lab, p["size"], dtype_of(lab, p["dtype"]))
        return {
            name: lab.events(looped(lab, x, w, p["iters"], forced), p.iterations(name))
            for name, forced in zip(names, (False, True))
        }

    produces(*names, parameters=["dtype", "size", "iters"], together=together)(make)


matmul_loops("big", together=["dtype"])
matmul_loops("small", together=["dtype"])
matmul_loops("linear", together=["iters"])


@produces("sync-points.same.a", "sync-points.same.b", parameters=["dtype", "size", "iters"])
def same(lab, p):
    x, w = operands(lab, p["size"], dtype_of(lab, p["dtype"]))
    return twice(lab, "sync-points", looped(lab, x, w, p["iters"], True))


@produces(
    "sync-points.item.pending", "sync-points.print.pending", "sync-points.item.ready", "sync-points.print.ready",
    "sync-points.item.value", parameters=["dtype", "size"], together=["dtype"],
)
def reads_of_one_element(lab, p):
    x, w = operands(lab, p["size"], dtype_of(lab, p["dtype"]))

    def element():
        return lab.torch.mm(x, w)[0, 0]

    return {
        "sync-points.item.pending": lab.read(element, lambda y: y.item()),
        "sync-points.print.pending": lab.read(element, print_tensor),
        "sync-points.item.ready": lab.read(element, lambda y: y.item(), ready=True),
        "sync-points.print.ready": lab.read(element, print_tensor, ready=True),
        "sync-points.item.value": lab.observed(lambda: element().item()),
    }


def other_reads(lab, dtype):
    """By name; each takes a result."""
    rows = lab.torch.tensor([0, 1, 2])

    def array(y):
        return y.cpu().numpy()

    reads = {"copy": lambda y: y.cpu(), "array": array, "any": lambda y: bool((y > 0).any()), "index": lambda y: y[rows]}
    if dtype == lab.torch.bfloat16:
        reads["array"] = NotApplicable("NumPy has no bf16")
    if isinstance(attempt(numpy), Exception):
        reads["array"] = attempt(numpy)
    return reads


OTHER_READS = ("copy", "array", "any", "index")


def read_or_absent(lab, make, read, ready):
    return read if isinstance(read, NotApplicable) else lab.read(make, read, ready)


@produces(*(f"sync-points.other.{read}.pending" for read in OTHER_READS), parameters=["dtype", "size", "behind"])
def pending_reads(lab, p):
    torch, dtype = lab.torch, dtype_of(lab, p["dtype"])
    (x, w), large = operands(lab, p["size"], dtype), operands(lab, p["behind"], dtype)

    def behind():
        torch.mm(*large)
        return torch.mm(x, w)

    return {
        f"sync-points.other.{name}.pending": read_or_absent(lab, behind, read, False)
        for name, read in other_reads(lab, dtype).items()
    }


@produces(*(f"sync-points.other.{read}.ready" for read in OTHER_READS), parameters=["dtype", "size", "behind"])
def ready_reads(lab, p):
    """A group of their own: what a large matmul leaves behind in the host's caches is not theirs."""
    dtype = dtype_of(lab, p["dtype"])
    x, w = operands(lab, p["size"], dtype)
    return {
        f"sync-points.other.{name}.ready": read_or_absent(lab, lambda: lab.torch.mm(x, w), read, True)
        for name, read in other_reads(lab, dtype).items()
    }


@produces(
    "sync-points.training-loop.each-step", "sync-points.training-loop.accumulated",
    parameters=["dtype", "model", "size", "steps"],
)
def training_loop(lab, p):
    torch, steps = lab.torch, p["steps"]
    x, w = operands(lab, p["size"], dtype_of(lab, p["dtype"]))

    def each_step():
        for _ in range(steps):
            torch.mm(x, w).mean().item()

    def accumulated():
        return torch.stack([torch.mm(x, w).mean() for _ in range(steps)]).mean().item()

    return {
        "sync-points.training-loop.each-step": lab.host(each_step),
        "sync-points.training-loop.accumulated": lab.host(accumulated),
    }


@produces("sync-points.inference.single", "sync-points.inference.batch", parameters=["dtype", "size", "samples"])
def inference(lab, p):
    torch, size, dtype = lab.torch, p["size"], dtype_of(lab, p["dtype"])
    w = torch.randn(size, size, device=lab.device, dtype=dtype)
    inputs = [torch.randn(size, dtype=dtype) for _ in range(p["samples"])]

    def single():
        return [torch.mm(data.to(lab.device).reshape(1, size), w).cpu() for data in inputs]

    def batch():
        return torch.mm(torch.stack(inputs).to(lab.device), w).cpu()

    return {"sync-points.inference.single": lab.host(single), "sync-points.inference.batch": lab.host(batch)}


@produces(*(f"sync-points.timing.{what}" for what in ("wall", "events", "complete")), parameters=["dtype", "size"])
def timing(lab, p):
    x, w = operands(lab, p["size"], dtype_of(lab, p["dtype"]))

    def matmul():
        return lab.torch.mm(x, w)

    return {
        "sync-points.timing.wall": lab.host(matmul),
        "sync-points.timing.events": lab.events(matmul),
        "sync-points.timing.complete": lab.host(synchronized(lab, matmul)),
    }


@produces(
    "sync-points.multi-stream.one-stream", "sync-points.multi-stream.two-streams",
    parameters=["dtype", "model", "size"],
)
def two_matmuls(lab, p):
    torch, dtype = lab.torch, dtype_of(lab, p["dtype"])
    pairs = [operands(lab, p["size"], dtype) for _ in range(2)]
    lab.synchronize()

    def both(streams):
        def region():
            made = []
            for stream, pair in zip(streams, pairs):
                with torch.cuda.stream(stream):
                    made.append(torch.mm(*pair))
            lab.synchronize()
            return made

        return lab.host(region)

    first, second = lab.stream(0), lab.stream(1)
    return {
        "sync-points.multi-stream.one-stream": both((first, first)),
        "sync-points.multi-stream.two-streams": both((first, second)),
    }


@produces("sync-points.gap", "sync-points.gap.none", parameters=["kernel_seconds"], together=["kernel_seconds"])
def gap(lab, p):
    """The time of the device between two kernels: events directly after the first and directly before the second."""
    ended, begun = lab.timing_events()

    def between(synchronize):
        def measure():
            lab.spin(p["kernel_seconds"])
            ended.record()
            if synchronize:
                lab.synchronize()
            begun.record()
            lab.spin(p["kernel_seconds"])
            begun.synchronize()
            return ended.elapsed_time(begun) / 1e3

        return Case(EVENTS, measure)

    return {"sync-points.gap": between(True), "sync-points.gap.none": between(False)}


@produces("sync-points.item.after", parameters=["kernel_seconds"], together=["kernel_seconds"])
def ready_read(lab, p):
    x = lab.torch.zeros(1, device=lab.device)

    def element():
        lab.spin(p["kernel_seconds"])
        return x[0]

    return {"sync-points.item.after": lab.read(element, lambda y: y.item(), ready=True)}


@produces(
    "sync-points.idle.each", "sync-points.idle.none", parameters=["dtype", "size", "iters"], recorded=True)
def idle_device(lab, p):
    """Which share of the time from the first kernel to the last none runs, in a loop of small matmuls."""
    x, w = operands(lab, p["size"], dtype_of(lab, p["dtype"]))

    def case(forced):
        region = looped(lab, x, w, p["iters"], forced)

        def act():
            region()
            # Outside of the loop: what is not yet complete belongs to the trial, too.
            lab.synchronize()

        return RecordedCase(act, idle_share)

    return {"sync-points.idle.each": case(True), "sync-points.idle.none": case(False)}


def idle_share(trial):
    kernels = [(span.start, span.end) for span in trial.launched("kernel")]
    if len(kernels) < 2:
        raise NotRecorded("the profiler recorded no kernels of the loop")
    whole = max(end for _, end in kernels) - min(start for start, _ in kernels)
    return 1.0 - union(kernels) / whole
