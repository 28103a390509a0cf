"""Calls of PyTorch, each on a line of its own: those that wait for the device, and those that do not. Which is which is not
stated here: `labels.py` finds it out with a gate."""
import torch

CUDA = "cuda"
N = 1 << 20


class Values:
    """What the calls work on."""

    def __init__(self):
        self.x = torch.randn(N, device=CUDA)
        self.m = torch.randn(512, 512, device=CUDA)
        self.s = torch.zeros((), device=CUDA)
        self.i = torch.arange(1024, device=CUDA)
        self.mask = self.x > 0
        self.out = torch.empty(10_000_000, device=CUDA)
        self.host = {bytes: torch.ones(bytes // 4) for bytes in (40, 65_536, 1 << 20, 40_000_000)}
        self.pinned = {bytes: values.pin_memory() for bytes, values in self.host.items()}
        self.event = torch.cuda.Event()
        self.stream = torch.cuda.current_stream()
        self.spare = []

    def prepare(self):
        """Before each call, with nothing pending."""
        self.spare = [torch.empty(64 << 20, device=CUDA)]

    def pending(self):
        """Behind the work that is pending."""
        self.event.record()
        self.spare = []


# fmt: off
CALLS = [
    ("item", lambda v: v.s.item()),
    ("float", lambda v: float(v.s)),
    ("bool of a comparison", lambda v: bool((v.x > 3).any())),
    ("if", lambda v: 1 if v.s > 0 else 0),
    ("tolist", lambda v: v.i.tolist()),
    ("str", lambda v: str(v.s)),
    ("cpu, 4 B", lambda v: v.s.cpu()),
    ("cpu, 4 MB", lambda v: v.x.cpu()),
    ("cpu, 40 MB", lambda v: v.out.cpu()),
    ("to host into pinned, blocking", lambda v: v.pinned[40].copy_(v.out[:10])),
    ("to host into pinned, 1 MiB, not blocking", lambda v: v.pinned[1 << 20].copy_(v.out[:262144], non_blocking=True)),
    ("to host into pageable, 40 B, not blocking", lambda v: v.host[40].copy_(v.out[:10], non_blocking=True)),
    ("to host into pageable, 40 MB, not blocking", lambda v: v.host[40_000_000].copy_(v.out, non_blocking=True)),
    ("to device from pageable, 40 B", lambda v: v.host[40].to(CUDA)),
    ("to device from pageable, 64 KiB", lambda v: v.host[65_536].to(CUDA)),
    ("to device from pageable, 1 MiB", lambda v: v.host[1 << 20].to(CUDA)),
    ("to device from pageable, 40 MB", lambda v: v.host[40_000_000].to(CUDA)),
    ("to device from pageable, 40 B, not blocking", lambda v: v.host[40].to(CUDA, non_blocking=True)),
    ("to device from pageable, 64 KiB, not blocking", lambda v: v.host[65_536].to(CUDA, non_blocking=True)),
    ("to device from pageable, 1 MiB, not blocking", lambda v: v.host[1 << 20].to(CUDA, non_blocking=True)),
    ("to device from pageable, 40 MB, not blocking", lambda v: v.host[40_000_000].to(CUDA, non_blocking=True)),
    ("to device from pinned, 40 MB", lambda v: v.pinned[40_000_000].to(CUDA)),
    ("to device from pinned, 40 B, not blocking", lambda v: v.pinned[40].to(CUDA, non_blocking=True)),
    ("to device from pinned, 40 MB, not blocking", lambda v: v.pinned[40_000_000].to(CUDA, non_blocking=True)),
    ("tensor of a list on the device", lambda v: torch.tensor([1, 2, 3], device=CUDA)),
    ("nonzero", lambda v: v.mask.nonzero()),
    ("where with one argument", lambda v: torch.where(v.mask)),
    ("index by a mask", lambda v: v.x[v.mask]),
    ("masked_select", lambda v: v.x.masked_select(v.mask)),
    ("index by a list", lambda v: v.x[[1, 2, 3]]),
    ("unique", lambda v: torch.unique(v.i)),
    ("equal", lambda v: torch.equal(v.i, v.i)),
    ("allclose", lambda v: torch.allclose(v.m, v.m)),
    ("repeat_interleave by a tensor", lambda v: torch.repeat_interleave(v.i)),
    ("bincount", lambda v: torch.bincount(v.i)),
    ("synchronize", lambda v: torch.cuda.synchronize()),
    ("Stream.synchronize", lambda v: v.stream.synchronize()),
    ("Event.synchronize", lambda v: v.event.synchronize()),
    ("empty_cache with memory to free", lambda v: torch.cuda.empty_cache()),
    ("sum", lambda v: v.x.sum()),
    ("mean", lambda v: v.x.mean()),
    ("matmul", lambda v: v.m @ v.m),
    ("add", lambda v: v.x + 1),
    ("in place", lambda v: v.x.mul_(1.0)),
    ("y[0]", lambda v: v.x[0]),
    ("slice", lambda v: v.x[10:1000]),
    ("assign a number", lambda v: v.x.__setitem__(0, 1.0)),
    ("where with three arguments", lambda v: torch.where(v.mask, v.x, 0.0)),
    ("index by a tensor of the device", lambda v: v.x[v.i]),
    ("index_select", lambda v: v.x.index_select(0, v.i)),
    ("gather", lambda v: v.x.gather(0, v.i)),
    ("clone", lambda v: v.x.clone()),
    ("copy on the device", lambda v: v.out[:N].copy_(v.x)),
    ("zeros", lambda v: torch.zeros(1000, device=CUDA)),
    ("randn", lambda v: torch.randn(1000, device=CUDA)),
    ("arange", lambda v: torch.arange(1000, device=CUDA)),
    ("full", lambda v: torch.full((1000,), 2.0, device=CUDA)),
    ("cat", lambda v: torch.cat([v.x, v.x])),
    ("softmax", lambda v: v.m.softmax(0)),
    ("sort", lambda v: v.x.sort()),
    ("topk", lambda v: v.x.topk(10)),
    ("cumsum", lambda v: v.x.cumsum(0)),
    ("masked_fill", lambda v: v.x.masked_fill(v.mask, 0.0)),
    ("Event.record", lambda v: torch.cuda.Event().record()),
    ("Event.query", lambda v: v.event.query()),
]
# fmt: on
# Loaded at its first use, in a process that has not used it: told apart from a wait.
COLD = ("a kernel that was not loaded", lambda v: torch.special.bessel_j0(v.x))


def line(call):
    return call.__code__.co_firstlineno
