import time

import torch

x = torch.randn(512, 512, dtype=torch.float16, device="cuda")
w = torch.randn(512, 512, dtype=torch.float16, device="cuda")

# Launched: the call returns at once.
y = x @ w

# Implicit synchronization: the value must exist before the host can read it.
print(y[0, 0].item())


def timed(iteration, repeats=100):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        iteration()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats


def forced():
    x @ w
    torch.cuda.synchronize()


# The same work with and without explicit synchronization, in alternation.
rounds = [(timed(lambda: x @ w), timed(forced)) for _ in range(20)]
for name, times in zip(("async", "forced"), zip(*rounds)):
    print(f"{name}: {sorted(times)[10] * 1e6:.1f} us an iteration")
