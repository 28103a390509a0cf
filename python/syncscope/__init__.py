"""Tests that fail where a line makes the host wait for the GPU.

    with syncscope.no_wait():
        step(model, batch)

    @syncscope.no_wait()
    def step(model, batch):
        ...

The block fails with a `WaitError` if one of its calls *can* wait for the device, whether or not something was pending. It names the
line, PyTorch's operator and the driver's call.

A wait is seen in the driver, so it may be PyTorch's own, that of cuBLAS or NCCL, or of any other library in the process. What is
one: a synchronization with a stream, an event or the device; a copy into pageable memory, and a large one from it; a
synchronous copy; and to free memory of the device or page-locked memory.

What makes something ready is none, as a test must not depend on what ran before it: to load code, to create a context, to
allocate. What a library does at its first call may wait all the same. So run the code once before the block.

A block counts what its own thread waits for, from its begin to its end. While one in a coroutine is suspended, it has the waits of
the tasks that go on meanwhile, and says so. While one in a generator is suspended, it has the waits of the generator's caller, as
context managers that are generators need it. Blocks that overlap, and neither is within the other, are a `CannotWatchError`.
PyTorch's backward pass is run by this thread as long as a block is open, so that its waits have the line of `backward()`. An inner
block is judged by itself: the outer one does not have its waits.

`# syncscope: wait ok` on a line allows the waits of its statement, also those that it calls for. `allow` takes pairs of a
pattern and a reason: `("train.py:log_loss", "every 100 steps")` for a function and what it calls, `("aten::nonzero", "…")` for
an operator, `("cuEventSynchronize", "…")` for a call of the driver. A `*` stands for any letters.
"""
from ._native import CannotWatchError, NoCudaError, library
from ._region import no_wait
from ._waits import Wait, WaitError

__all__ = ["CannotWatchError", "NoCudaError", "Wait", "WaitError", "library", "no_wait"]
