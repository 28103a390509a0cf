"""Kernels of the kinds that users bring, by the ways in which programs with PyTorch time a kernel."""

import math
import os

from ..catalogue import Skipped, attempt, produces
from ..lab import EVENTS, Case

PREFIX = "self-audit.kernel."
PATH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "kernels.cu")

# The launches of a loop where the plan states none.
LAUNCHES = 100
# 0.5 as a float: versions of PyTorch pass a number with a point as a float or as a double.
HALF = 0x3F000000
# For how long, in milliseconds, one sample warms up and repeats: a run takes many.
WARMUP, REPEAT = 1, 5


@produces(*(f"{PREFIX}{name}" for name in ("events", "loop", "cold")), parameters=["kernel"])
def kernels(lab, p):
    launch = launcher(lab, p["kernel"])
    launches = p.iterations(f"{PREFIX}loop", LAUNCHES)
    launch()
    lab.synchronize()

    def loop():
        for _ in range(launches):
            launch()

    return {
        f"{PREFIX}events": lab.events(launch),
        f"{PREFIX}loop": lab.events(loop, launches),
        f"{PREFIX}cold": attempt(lambda: cold(launch)),
    }


def cold(launch):
    """Triton fills the caches before each launch, and puts events around it."""
    try:
        from triton.testing import do_bench
    except ImportError:
        raise Skipped("Triton is not installed beside PyTorch") from None
    return Case(EVENTS, lambda: do_bench(launch, warmup=WARMUP, rep=REPEAT, return_mode="median") / 1e3)


def launcher(lab, kernel):
    """Launches a kernel with the grid and the tensors that its size asks for: `saxpy 4096`."""
    name, size = kernel.split()
    size = int(size)
    call = lab.once(("kernel", name), lambda: compiled(lab, name))

    def ones(*shape):
        return lab.torch.ones(*shape, device=lab.device)

    def blocks(side):
        return math.ceil(size / side)

    if name == "saxpy":
        grid, block, arguments = (blocks(256), 1, 1), (256, 1, 1), (HALF, ones(size), ones(size), size)
    elif name == "sum":
        threads = min(max(size // 4, 1), 1 << 18)
        grid, block, arguments = (math.ceil(threads / 256), 1, 1), (256, 1, 1), (ones(size), ones(1), size)
    elif name == "transpose":
        grid, block = (blocks(32), blocks(32), 1), (32, 8, 1)
        arguments = (ones(size, size), ones(size, size), size)
    elif name == "matmul":
        grid, block = (blocks(16), blocks(16), 1), (16, 16, 1)
        arguments = (*(ones(size, size) for _ in range(3)), size)
    else:
        raise Skipped(f"the script for PyTorch knows no kernel {name}")
    return lambda: call(grid, block, arguments)


def compiled(lab, name):
    compiler = getattr(lab.torch.cuda, "_compile_kernel", None)
    if compiler is None:
        raise Skipped("this version of PyTorch compiles no kernels in CUDA C++")
    with open(PATH, encoding="utf-8") as file:
        source = file.read()
    try:
        return compiler(source, name)
    except OSError as error:
        # No toolkit whose headers it names, or no NVRTC.
        raise Skipped(f"PyTorch compiles no kernels here: {error}") from error
