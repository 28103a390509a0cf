import time

import torch

w = torch.randn(256, 256, device="cuda")
x = torch.randn(256, 256, device="cuda")
# CUDA loads a kernel at its first launch.
torch.stack([(x @ w).mean()]).mean()
torch.cuda.synchronize()

# Launched, not read: the losses stay on the device.
start = time.perf_counter()
losses = [(x @ w).mean() for _ in range(10)]
print(f"dispatch returned after {time.perf_counter() - start:.6f} s")

# One synchronization point for all of them.
start = time.perf_counter()
mean = torch.stack(losses).mean().item()
print(f"mean {mean}, after a wait of {time.perf_counter() - start:.6f} s")

# Printing synchronizes, too: it needs the elements.
x, y = torch.ones(1, 2, device="cuda"), torch.ones(1, 2, device="cuda")
print(x * y + 2)
