"""Which calls of PyTorch wait for the work before them, judged by a closed gate, and what PyTorch's own debug mode says of
them."""

import warnings

from ..catalogue import NotApplicable, attempt, produces
from .common import host_memory, numpy, print_tensor, twice

ELEMENTS = 1 << 16
LARGE = 10_000_000

# After how long a call behind a closed gate counts as one that waits: well above what most of them cost by themselves.
PATIENCE = 0.004

# The length of the work before a timed call, in seconds.
WORK = 0.001


class Prepared:
    """A call before which something is done each time."""

    def __init__(self, prepare, call):
        self.prepare, self.call = prepare, call

    def __call__(self):
        return self.call()


class Fixture:
    """What the calls are made on: tensors on the device and on the host, on the current stream."""

    def __init__(self, lab):
        self.lab, torch = lab, lab.torch
        self.x = torch.randn(ELEMENTS, device=lab.device)
        self.y = torch.randn(ELEMENTS, device=lab.device)
        self.mask = self.x > 0
        self.host_rows = torch.tensor([2, 0, 1])
        self.device_rows = self.host_rows.to(lab.device)

    def one_branch(self):
        if self.mask.any():
            return 1
        return 0

    def set_scalar(self):
        self.x[self.mask] = 0.0

    def set_tensor(self):
        self.x[self.mask] = self.y[self.mask]

    def del_large(self):
        large = self.lab.torch.empty(LARGE, device=self.lab.device)
        del large


def copied(memory, elements, non_blocking):
    def make(f):
        host = host_memory(f.lab, memory, elements)
        return lambda: host.to(f.lab.device, non_blocking=non_blocking)

    return make


def repeated(sized):
    def make(f):
        torch = f.lab.torch
        counts = torch.ones(ELEMENTS, device=f.lab.device, dtype=torch.int64)
        size = {"output_size": ELEMENTS} if sized else {}
        return lambda: torch.repeat_interleave(f.x, counts, **size)

    return make


def drawn(f):
    weights = f.lab.torch.ones(ELEMENTS, device=f.lab.device)
    return lambda: f.lab.torch.multinomial(weights, 16)


def event(f):
    event = f.lab.torch.cuda.Event()

    def call():
        event.record()
        event.synchronize()

    return call


def wait_stream(f):
    other = f.lab.stream(1)
    return lambda: other.wait_stream(f.lab.current())


def loader(f):
    data = f.lab.torch.utils.data
    dataset = data.TensorDataset(f.lab.torch.ones(64, 1024))
    batches = data.DataLoader(dataset, batch_size=16, pin_memory=True)
    return lambda: next(iter(batches))


def parameters(f):
    """Parameters with gradients."""
    made = [f.lab.torch.nn.Parameter(f.lab.torch.randn(256, 256, device=f.lab.device)) for _ in range(4)]
    for parameter in made:
        parameter.grad = f.lab.torch.ones(256, 256, device=f.lab.device)
    return made


def clip(f):
    made = parameters(f)
    return lambda: f.lab.torch.nn.utils.clip_grad_norm_(made, 1.0)


def adam(capturable):
    def make(f):
        return f.lab.torch.optim.Adam(parameters(f), capturable=capturable).step

    return make


def scaler(f):
    torch = f.lab.torch
    optimizer, scaler = torch.optim.SGD(parameters(f), lr=0.01), torch.amp.GradScaler("cuda")
    scaler.scale(torch.ones(1, device=f.lab.device))

    def call():
        scaler.step(optimizer)
        scaler.update()

    return call


def emptied(f):
    return Prepared(f.del_large, f.lab.torch.cuda.empty_cache)


def array(f):
    numpy()
    return lambda: f.x.cpu().numpy()


# What makes each call, from a fixture.
CALLS = {
    "item": lambda f: lambda: f.x[7].item(),
    "tolist": lambda f: lambda: f.x[:8].tolist(),
    "cpu": lambda f: lambda: f.x.cpu(),
    "cpu-numpy": array,
    "print": lambda f: lambda: print_tensor(f.x[7]),
    "any-in-if": lambda f: f.one_branch,
    "nonzero": lambda f: lambda: f.lab.torch.nonzero(f.x),
    "masked-select": lambda f: lambda: f.lab.torch.masked_select(f.x, f.mask),
    "boolean-index": lambda f: lambda: f.x[f.mask],
    "boolean-assign-scalar": lambda f: f.set_scalar,
    "boolean-assign-tensor": lambda f: f.set_tensor,
    "unique": lambda f: lambda: f.lab.torch.unique(f.device_rows),
    "where-one": lambda f: lambda: f.lab.torch.where(f.mask),
    "where-three": lambda f: lambda: f.lab.torch.where(f.mask, f.x, f.y),
    "index-by-host-tensor": lambda f: lambda: f.x[f.host_rows],
    "index-by-device-tensor": lambda f: lambda: f.x[f.device_rows],
    "tensor-on-device": lambda f: lambda: f.lab.torch.tensor([1.0] * 16, device=f.lab.device),
    "to-device-pageable": copied("pageable", ELEMENTS, False),
    "to-device-pageable-non-blocking": copied("pageable", ELEMENTS, True),
    "to-device-pageable-large-non-blocking": copied("pageable", LARGE, True),
    "to-device-pinned": copied("pinned", ELEMENTS, False),
    "to-device-pinned-non-blocking": copied("pinned", ELEMENTS, True),
    "to-host-non-blocking": lambda f: lambda: f.x.to("cpu", non_blocking=True),
    "repeat-interleave": repeated(False),
    "repeat-interleave-sized": repeated(True),
    "multinomial": drawn,
    "empty-cache": emptied,
    "del-large": lambda f: f.del_large,
    "event-synchronize": event,
    "wait-stream": wait_stream,
    "dataloader-pin-memory": loader,
    "grad-scaler-step": scaler,
    "clip-grad-norm": clip,
    "adam-step": adam(False),
    "adam-step-capturable": adam(True),
    "sum": lambda f: lambda: f.x.sum(),
}


def made(lab, name):
    """The call of a name, on a fixture of its own."""
    if name not in CALLS:
        raise NotApplicable(f"the script for PyTorch has no call `{name}`")
    with lab.torch.cuda.stream(lab.stream()):
        call = CALLS[name](Fixture(lab))
    lab.synchronize()
    return call


def prepares(call):
    """What is done before a call each time."""
    return getattr(call, "prepare", lambda: None)


@produces("pytorch-calls.ready", "pytorch-calls.behind", parameters=["call"])
def times(lab, p):
    def timed(work=None):
        call, stream = made(lab, p["call"]), lab.stream()

        def begin():
            prepares(call)()
            lab.synchronize()
            if work:
                lab.spin(work)

        # What it loads and allocates for the first time is not what it does each time.
        case = lab.read(begin, lambda _: call(), stream=stream)
        case.measure()
        return case

    return {
        "pytorch-calls.ready": attempt(timed),
        "pytorch-calls.behind": attempt(lambda: timed(WORK)),
    }


@produces("pytorch-calls.blocks", "pytorch-calls.blocks-other", "pytorch-calls.warns", parameters=["call"])
def calls(lab, p):
    def blocks(held=None):
        call = made(lab, p["call"])
        return lab.blocks(call, held=held, patience=PATIENCE, prepare=prepares(call))

    def warned():
        call = made(lab, p["call"])
        # The mode's first use warns of itself.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lab.torch.cuda.set_sync_debug_mode("warn")
            lab.torch.cuda.set_sync_debug_mode("default")
        # What it loads and allocates for the first time is not what it does each time.
        with lab.torch.cuda.stream(lab.stream()):
            prepares(call)()
            call()
        lab.synchronize()
        return lab.observed(lambda: warns(lab, call))

    return {
        "pytorch-calls.blocks": attempt(blocks),
        # Another stream than the one that `wait-stream` is about.
        "pytorch-calls.blocks-other": attempt(lambda: blocks(lab.stream(2))),
        "pytorch-calls.warns": attempt(warned),
    }


@produces("pytorch-calls.same.a", "pytorch-calls.same.b", parameters=["elements"])
def same(lab, p):
    x = lab.torch.ones(p["elements"], device=lab.device)
    return twice(lab, "pytorch-calls", lambda: x.sum())


def warns(lab, call):
    """Whether PyTorch warns of the call in its debug mode, which is off again afterwards."""
    cuda = lab.torch.cuda
    with warnings.catch_warnings(record=True) as said, cuda.stream(lab.stream()):
        warnings.simplefilter("always")
        prepares(call)()
        cuda.set_sync_debug_mode("warn")
        try:
            made = call()
        finally:
            cuda.set_sync_debug_mode("default")
        del made
    return float(any("synchroniz" in str(one.message) for one in said))
