"""A stand-in for PyTorch with a GPU: streams, gates and the calls that wait, and no values.

Work is complete when it is launched, unless a closed gate holds its stream. A call that waits for a stream waits until its
gate is open. Each call that is made is recorded, and the profiler makes a trace of it. What the script calls and the
stand-in lacks is an error.
"""

import contextlib
import ctypes
import json
import sys
import threading
import time
import types
import unittest.mock
import warnings

# How many launches a held stream takes.
DEPTH = 1021


class OutOfMemoryError(RuntimeError):
    pass


class ProfilerActivity:
    CPU, CUDA = "cpu", "cuda"


class Device:
    def __init__(self, kind, index=None):
        self.type, _, number = kind.partition(":")
        self.index = index if index is not None else int(number or 0)

    def __eq__(self, other):
        return (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))


class Gpu:
    """The state of the machine that the stand-in pretends."""

    def __init__(self, count=1):
        self.count = count
        self.holds = {}
        self.launched = {}
        self.hold = None
        self.events = None
        self.correlation = 0
        self.traced = 0.0
        self.broken = None
        self.debug_mode = "default"
        self.compiles = True
        self.calls = []

    def tick(self):
        """The time in a trace, in microseconds: what happens later is written later, however fast the machine is."""
        self.traced += 10.0
        return self.traced

    def closed(self, stream):
        """Whether a gate holds the stream."""
        word, number = self.holds.get(stream, (None, 0))
        return word is not None and word.value < number

    def wait(self, *streams):
        """Until no gate holds these streams; without a name, all. A call that waits behind a closed gate uses up all
        patience at once: whether it blocks does not depend on the speed of a machine."""
        self.check()
        while any(self.closed(stream) for stream in streams or list(self.holds)):
            if self.hold is not None:
                self.hold.late = True
                self.hold.open()
            time.sleep(1e-4)

    def check(self):
        if self.broken:
            raise RuntimeError(self.broken)

    def call(self, name, stream=None, kind=None, work=None):
        """A call of the runtime, and the work that it launches."""
        self.check()
        self.calls.append(name)
        if stream is not None:
            if not self.closed(stream):
                self.launched[stream] = 0
            elif self.launched.get(stream, 0) >= DEPTH:
                while self.closed(stream):
                    time.sleep(1e-4)
            self.launched[stream] = self.launched.get(stream, 0) + 1
        if self.events is not None:
            self.correlation += 1
            now = self.tick()
            self.events.append(event("cuda_runtime", name, now, 1, correlation=self.correlation))
            if kind:
                place = {"stream": stream, "correlation": self.correlation, "device": 0}
                self.events.append({**event(kind, work, now + 1, 2), "tid": 7, "args": place})


def event(kind, name, start, duration, **arguments):
    return {"ph": "X", "cat": kind, "name": name, "pid": 1, "tid": threading.get_ident(), "ts": start, "dur": duration,
            "args": arguments}


def make(gpu):
    """The module `torch`."""
    torch = types.ModuleType("torch")
    torch.__version__, torch.__file__ = "2.99.0+standin", __file__
    torch.version = types.SimpleNamespace(cuda="13.0")
    for dtype in ("float16", "bfloat16", "float32", "int32", "int64", "uint8"):
        setattr(torch, dtype, dtype)
    current = [0]

    class Stream:
        handles = 0

        def __init__(self, device=None, handle=None):
            if handle is None:
                Stream.handles += 1
                handle = Stream.handles
            self.cuda_stream = handle

        def synchronize(self):
            gpu.call("cudaStreamSynchronize")
            gpu.wait(self.cuda_stream)

        def query(self):
            return not gpu.closed(self.cuda_stream)

        def wait_event(self, event):
            gpu.call("cudaStreamWaitEvent")

        def wait_stream(self, stream):
            gpu.call("cudaStreamWaitEvent")

    class Event:
        def __init__(self, enable_timing=False):
            self.timing, self.stream, self.time = enable_timing, None, None

        def record(self, stream=None):
            self.stream = stream.cuda_stream if stream else current[0]
            self.time = time.perf_counter()
            gpu.call("cudaEventRecord", self.stream)

        def synchronize(self):
            gpu.call("cudaEventSynchronize")
            gpu.wait(self.stream)

        def elapsed_time(self, end):
            if not (self.timing and end.timing):
                raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
            return (end.time - self.time) * 1e3

    class Tensor:
        def __init__(self, shape, device="cpu", dtype="float32", pinned=False):
            gpu.check()
            self.shape, self.dtype, self.pinned = tuple(shape), dtype, pinned
            self.device = device if isinstance(device, Device) else Device(device)

        @property
        def on_gpu(self):
            return self.device.type == "cuda"

        def like(self, shape=None):
            """The result of a kernel."""
            if self.on_gpu:
                gpu.call("cudaLaunchKernel", current[0], "kernel", "kernel")
            return Tensor(self.shape if shape is None else shape, self.device, self.dtype)

        def numel(self):
            count = 1
            for extent in self.shape:
                count *= extent
            return count

        def read(self):
            """A copy to the host that is waited for."""
            if self.on_gpu:
                if gpu.debug_mode == "warn":
                    warnings.warn("called a synchronizing CUDA operation", stacklevel=2)
                gpu.call("cudaMemcpyAsync", current[0], "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)")
                gpu.call("cudaStreamSynchronize")
                gpu.wait(current[0])

        def __add__(self, other):
            return self.like()

        __sub__ = __mul__ = __gt__ = __add__

        def __getitem__(self, index):
            if isinstance(index, Tensor):
                if not index.on_gpu and self.on_gpu:
                    self.read()
                return self.like(index.shape + self.shape[1:])
            if isinstance(index, slice):
                return Tensor((len(range(*index.indices(self.shape[0]))), *self.shape[1:]), self.device, self.dtype)
            places = index if isinstance(index, tuple) else (index,)
            for place, extent in zip(places, self.shape):
                if place >= extent:
                    raise IndexError(f"index {place} is out of bounds for dimension of size {extent}")
            return Tensor(self.shape[len(places):], self.device, self.dtype)

        def __setitem__(self, index, value):
            """As PyTorch does: the places of a mask are read, unless one value is set at all of them."""
            if isinstance(value, Tensor):
                index.read()
            self.like()

        def tolist(self):
            self.read()
            return [0.0] * self.numel()

        def add_(self, other):
            self.like()
            return self

        def fill_(self, value):
            return self.add_(value)

        def zero_(self):
            return self.add_(0)

        def copy_(self, other, non_blocking=False):
            if self.shape != other.shape:
                raise RuntimeError("The size of tensor a must match the size of tensor b")
            if self.on_gpu or other.on_gpu:
                way = ("HtoD" if not other.on_gpu else "DtoD") if self.on_gpu else "DtoH"
                gpu.call("cudaMemcpyAsync", current[0], "gpu_memcpy", f"Memcpy {way}")
                host = other if not other.on_gpu else self
                if way != "DtoD" and not (non_blocking and host.pinned):
                    gpu.call("cudaStreamSynchronize")
                    gpu.wait(current[0])
            return self

        def to(self, device, non_blocking=False):
            return Tensor(self.shape, device, self.dtype).copy_(self, non_blocking)

        def cpu(self):
            self.read()
            return Tensor(self.shape, "cpu", self.dtype)

        def numpy(self):
            if self.on_gpu:
                raise TypeError("can't convert cuda:0 device type tensor to numpy.")
            return object()

        def item(self):
            if self.numel() != 1:
                raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
            self.read()
            return 0.0

        def __bool__(self):
            return bool(self.item())

        def __str__(self):
            self.read()
            return "tensor(0.)"

        def any(self):
            return self.like(())

        sum = mean = any

        def sum(self):
            return self.like((1,))

        def backward(self):
            pass

        def reshape(self, *shape):
            return Tensor(shape, self.device, self.dtype)

        def data_ptr(self):
            self.memory = (ctypes.c_uint8 * (4 * self.numel()))()
            return ctypes.addressof(self.memory)

    def created(*shape, device="cpu", dtype="float32", pin_memory=False, requires_grad=False):
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        if pin_memory:
            gpu.call("cudaHostAlloc")
        tensor = Tensor(shape, device, dtype or "float32", pin_memory)
        if tensor.on_gpu:
            tensor.like()
        return tensor

    def nested(values):
        return (len(values),) if isinstance(values, list) else ()

    def moved(tensor, device):
        return tensor.to(device) if isinstance(device, Device) else tensor

    def mm(a, b):
        if a.shape[1] != b.shape[0]:
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
        return a.like((a.shape[0], b.shape[1]))

    def nonzero(tensor):
        tensor.read()
        return tensor.like((tensor.numel(), len(tensor.shape)))

    def masked(tensor, mask):
        mask.read()
        return tensor.like()

    def where(condition, *values):
        if not values:
            condition.read()
        return condition.like()

    def repeat_interleave(tensor, counts, output_size=None):
        if output_size is None:
            counts.read()
        return tensor.like()

    def unique(tensor):
        tensor.read()
        return tensor.like()

    class Optimizer:
        def __init__(self, parameters, lr=None, capturable=False):
            self.parameters = parameters

        def step(self):
            for parameter in self.parameters:
                parameter.add_(parameter.grad)

    class GradScaler:
        def __init__(self, device):
            self.scaled = False

        def scale(self, tensor):
            self.scaled = True
            return tensor

        def step(self, optimizer):
            assert self.scaled
            optimizer.parameters[0].sum().item()
            optimizer.step()

        def update(self):
            pass

    def data_loader(dataset, batch_size, pin_memory):
        return [created(batch_size, pin_memory=pin_memory)]

    torch.masked_select, torch.where, torch.unique, torch.repeat_interleave = masked, where, unique, repeat_interleave
    torch.multinomial = lambda weights, count: weights.like((count,))
    torch.nn = types.SimpleNamespace(
        Parameter=lambda tensor: tensor,
        utils=types.SimpleNamespace(clip_grad_norm_=lambda parameters, limit: parameters[0].grad.like(())))
    torch.optim = types.SimpleNamespace(Adam=Optimizer, SGD=Optimizer)
    torch.amp = types.SimpleNamespace(GradScaler=GradScaler)
    torch.utils = types.SimpleNamespace(data=types.SimpleNamespace(
        TensorDataset=lambda *tensors: tensors, DataLoader=data_loader))
    torch.Tensor, torch.device = Tensor, Device
    torch.zeros = torch.ones = torch.randn = torch.empty = created
    torch.tensor = lambda values, device="cpu": moved(created(*nested(values)), device)
    torch.mm, torch.nonzero = mm, nonzero
    torch.stack = lambda tensors: tensors[0].like((len(tensors), *tensors[0].shape))
    torch.count_nonzero = lambda tensor: tensor.like(())
    torch.get_num_threads = lambda: 2
    torch.set_float32_matmul_precision = lambda name: None
    torch._C = types.SimpleNamespace(_host_emptyCache=lambda: None)

    def synchronize(device=None):
        gpu.call("cudaDeviceSynchronize")
        gpu.wait()

    @contextlib.contextmanager
    def on_stream(stream):
        before = current[0]
        current[0] = stream.cuda_stream if stream is not None else before
        try:
            yield
        finally:
            current[0] = before

    class Graph:
        def replay(self):
            gpu.call("cudaGraphLaunch", current[0], "kernel", "kernel")

    def set_device(device):
        gpu.check()

    properties = types.SimpleNamespace(name="Stand-in GPU", uuid="GPU-01234567")
    torch.cuda = types.SimpleNamespace(
        Stream=Stream, Event=Event, CUDAGraph=Graph, OutOfMemoryError=OutOfMemoryError, stream=on_stream,
        synchronize=synchronize, graph=lambda graph: contextlib.nullcontext(), set_device=set_device,
        current_stream=lambda device=None: Stream(handle=current[0]), empty_cache=lambda: None,
        set_sync_debug_mode=lambda mode: setattr(gpu, "debug_mode", mode), is_available=lambda: gpu.count > 0, device_count=lambda: gpu.count,
        get_device_properties=lambda device: properties, get_device_capability=lambda device: (9, 0),
    )

    def compile_kernel(source, name):
        if f"void {name}(" not in source:
            raise RuntimeError(f"there is no kernel {name}")

        def launch(grid, block, args):
            if not all(isinstance(arg, (Tensor, int)) for arg in args):
                raise TypeError("Unsupported argument type")
            gpu.call("cuLaunchKernel", current[0], "kernel", name)

        return launch

    if gpu.compiles:
        torch.cuda._compile_kernel = compile_kernel

    class Profile:
        def __init__(self, activities):
            self.trace = None

        def __enter__(self):
            gpu.events = []
            return self

        def __exit__(self, *error):
            self.trace, gpu.events = gpu.events, None

        def export_chrome_trace(self, path):
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"traceEvents": self.trace}, file)

    @contextlib.contextmanager
    def record_function(name):
        start = gpu.tick()
        yield
        gpu.events.append(event("user_annotation", name, start, gpu.tick() - start))

    torch.profiler = types.SimpleNamespace(
        profile=Profile, record_function=record_function, ProfilerActivity=ProfilerActivity)
    return torch


def make_triton():
    """The module `triton.testing`."""
    testing = types.ModuleType("triton.testing")

    def do_bench(fn, warmup=25, rep=100, return_mode="mean"):
        fn()
        return 0.01

    testing.do_bench = do_bench
    return testing


class Driver:
    """The driver's calls, on the stand-in's streams."""

    def __init__(self, gpu):
        self.gpu = gpu

    def wait_for(self, stream, address, value):
        self.gpu.check()
        self.gpu.launched[stream] = 0
        self.gpu.holds[stream] = (ctypes.c_uint32.from_address(address), value)


class Spinner:
    def __init__(self, gpu):
        self.gpu = gpu

    def spin(self, stream, seconds):
        self.gpu.call("cuLaunchKernel", stream, "kernel", "spin")


@contextlib.contextmanager
def installed(gpu):
    """`import torch` gives the stand-in within the block, and gates and spins act on it."""
    from pytorch_system import gate

    class Hold(gate.Hold):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            gpu.hold = self

    torch = make(gpu)
    with contextlib.ExitStack() as patches:
        for name, value in (
            ("lab.Driver", lambda: Driver(gpu)), ("lab.Spinner", lambda *_: Spinner(gpu)), ("lab.PATIENCE", 60.0),
            ("experiments.pytorch_calls.PATIENCE", 60.0), ("gate.Hold", Hold), ("experiments.launch_path.BLOCKED", 0.3),
        ):
            patches.enter_context(unittest.mock.patch(f"pytorch_system.{name}", value))
        patches.enter_context(unittest.mock.patch.dict(
            sys.modules, {"torch": torch, "triton": types.ModuleType("triton"), "triton.testing": make_triton()}))
        yield torch
