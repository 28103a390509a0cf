"""What a call of PyTorch does inside, by the calls of CUDA that PyTorch's profiler recorded."""

import time

from ..catalogue import NotApplicable, produces
from ..lab import HOST, Case, RecordedCase
from ..recording import NotRecorded
from .common import host_memory, random_matmul
from .idle_device import idle_gpu

PREFIX = "implementation."
ELEMENTS, LAUNCHES = 1 << 18, 20
# Of the loop whose waits are timed: those of the text.
SIZE, ITERS = 100, 1000

WAITS = ("cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize")
# Enough for allocations that no earlier row has left in the cache of pinned memory.
PINNED_BYTES = 2_000_000


@produces(
    f"{PREFIX}device-synchronize.stream-call", f"{PREFIX}numpy.returns", f"{PREFIX}nonzero.count-read",
    f"{PREFIX}pin-memory.pinned-allocation", f"{PREFIX}copy.other-stream", f"{PREFIX}order.starts-in-order",
    recorded=True,
)
def calls(lab, p):
    torch = lab.torch
    x = torch.randn(ELEMENTS, device=lab.device)
    pinned = host_memory(lab, "pinned", ELEMENTS)
    kept = []

    def array():
        try:
            x.numpy()
        except TypeError:
            return 0.0
        return 1.0

    def copy_and_kernel():
        with torch.cuda.stream(lab.stream()):
            y = pinned.to(lab.device, non_blocking=True)
            y + 1
        lab.synchronize()

    def launches():
        for number in range(LAUNCHES):
            x[: ELEMENTS >> number % 8] + 1
        lab.synchronize()

    return {
        f"{PREFIX}device-synchronize.stream-call": RecordedCase(lambda: (x + 1, lab.synchronize()), stream_call),
        f"{PREFIX}numpy.returns": lab.observed(array),
        f"{PREFIX}nonzero.count-read": RecordedCase(lambda: torch.nonzero(x), count_read),
        f"{PREFIX}pin-memory.pinned-allocation": RecordedCase(
            # Kept, so that none is found in the cache of pinned memory.
            lambda: kept.append(torch.empty(PINNED_BYTES, dtype=torch.uint8, pin_memory=True)), pinned_allocation),
        f"{PREFIX}copy.other-stream": RecordedCase(copy_and_kernel, other_stream),
        f"{PREFIX}order.starts-in-order": RecordedCase(launches, starts_in_order),
    }


@produces(
    f"{PREFIX}copy.asynchronous-call", f"{PREFIX}copy.waits-inside", parameters=["mode"], together=["mode"],
    recorded=True,
)
def copies(lab, p):
    """A copy from pinned memory, with and without `non_blocking`."""
    pinned = host_memory(lab, "pinned", ELEMENTS)
    if p["mode"] not in ("blocking", "non-blocking"):
        raise NotApplicable(f"a copy in PyTorch is blocking or non-blocking, not {p['mode']}")

    def copy():
        pinned.to(lab.device, non_blocking=p["mode"] == "non-blocking")

    return {
        f"{PREFIX}copy.asynchronous-call": RecordedCase(copy, asynchronous_call),
        f"{PREFIX}copy.waits-inside": RecordedCase(copy, waits_inside),
    }


@produces(f"{PREFIX}idle-device.waiting", parameters=["device"], together=["device"])
def waiting(lab, p):
    """How long a synchronize of a device waits for pending work: what it takes beyond a second one right behind it.

    Not recorded, since a profiler makes the host so slow that the device has finished before the host asks.
    """
    synchronized = {"same": lab.device, "other": idle_gpu(lab)}.get(p["device"])
    if synchronized is None:
        raise NotApplicable(f"`device` is same or other, not {p['device']}")
    synchronize = lab.torch.cuda.synchronize

    def loop():
        seconds = 0.0
        for _ in range(ITERS):
            random_matmul(lab, SIZE)
            start = time.perf_counter()
            synchronize(synchronized)
            middle = time.perf_counter()
            synchronize(synchronized)
            seconds += (middle - start) - (time.perf_counter() - middle)
        lab.synchronize()
        return seconds

    return {f"{PREFIX}idle-device.waiting": Case(HOST, loop)}


def stream_call(trial):
    if trial.called("cudaStreamSynchronize"):
        return 1.0
    if trial.called("cudaDeviceSynchronize"):
        return 0.0
    raise NotRecorded("the profiler recorded no synchronize in a synchronize of the device")


def count_read(trial):
    """A copy to the host that the host then waits for; a copy that is not asynchronous waits by itself."""
    reads = {span.correlation for span in trial.launched("gpu_memcpy") if "DtoH" in span.name}
    copies = [call for call in trial.calls if call.correlation in reads]
    waits = trial.called(*WAITS)
    return float(any(copy.name == "cudaMemcpy" or any(w.start >= copy.end for w in waits) for copy in copies))


def pinned_allocation(trial):
    return float(bool(trial.called("cudaHostAlloc", "cudaMallocHost", "cudaHostRegister", "cuMemHostAlloc")))


def asynchronous_call(trial):
    if trial.called("cudaMemcpyAsync"):
        return 1.0
    if trial.called("cudaMemcpy"):
        return 0.0
    raise NotRecorded("the profiler recorded no copy in a copy")


def waits_inside(trial):
    asynchronous_call(trial)
    return float(bool(trial.called(*WAITS)))


def other_stream(trial):
    copies, kernels = trial.launched("gpu_memcpy"), trial.launched("kernel")
    if not copies or not kernels:
        raise NotRecorded("the profiler recorded no copy, or no kernel of the current stream")
    return float(copies[0].stream != kernels[0].stream)


def starts_in_order(trial):
    kernels = {span.correlation: span for span in trial.launched("kernel")}
    starts = [kernels[call.correlation].start for call in trial.calls if call.correlation in kernels]
    if len(starts) < 2:
        raise NotRecorded("the profiler recorded no kernels of the loop")
    return float(all(a <= b for a, b in zip(starts, starts[1:])))
