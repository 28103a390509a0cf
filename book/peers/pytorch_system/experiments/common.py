"""What several experiments do alike."""

import importlib.util
import os

from ..catalogue import NotApplicable

# The target of printed tensors. It costs a system call, but not the speed of a terminal.
NOWHERE = open(os.devnull, "w", encoding="utf-8")


def print_tensor(tensor):
    print(tensor, file=NOWHERE, flush=True)


def random_matmul(lab, size):
    """One iteration of the texts' loop: a random matrix, multiplied by itself."""
    a = lab.torch.randn(size, size, device=lab.device)
    return lab.torch.mm(a, a)


def dtype_of(lab, name):
    types = {"fp16": lab.torch.float16, "bf16": lab.torch.bfloat16, "fp32": lab.torch.float32}
    if name not in types:
        raise NotApplicable(f"PyTorch's rows are measured for {', '.join(types)}, not for {name}")
    return types[name]


def twice(lab, experiment, region):
    """The same code as two rows: their difference is none."""
    return {f"{experiment}.same.{which}": lab.host(region) for which in ("a", "b")}


def operands(lab, size, dtype):
    return [lab.torch.randn(size, size, device=lab.device, dtype=dtype) for _ in range(2)]


def synchronized(lab, launch):
    """`launch`, and a synchronize of the device; what it launched is returned."""

    def region():
        made = launch()
        lab.synchronize()
        return made

    return region


def host_memory(lab, memory, elements, dtype=None):
    """A host tensor of ones in memory of this kind."""
    if memory not in ("pageable", "pinned"):
        raise NotApplicable(f"PyTorch allocates no {memory} host memory")
    return lab.torch.ones(elements, pin_memory=memory == "pinned", dtype=dtype)


def numpy():
    if not importlib.util.find_spec("numpy"):
        raise NotApplicable("NumPy is not installed beside PyTorch")
    import numpy as module

    return module
