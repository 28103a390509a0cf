import time

import torch

LOOPS = 100
# Every device has a second stream. Few machines have a second device.
busy, idle = torch.cuda.Stream(), torch.cuda.Stream()


def iterate():
    with torch.cuda.stream(busy):
        a = torch.randn(100, 100, device="cuda")
        a @ a


def timed(stream):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(LOOPS):
        iterate()
        stream.synchronize()
    # Both loops end with their work done.
    busy.synchronize()
    return time.perf_counter() - start


for stream in (idle, busy):
    timed(stream)

# In turn, so that a change of the machine's speed affects both.
rounds = [(timed(idle), timed(busy)) for _ in range(20)]
for name, times in zip(("other", "same"), zip(*rounds)):
    print(f"{name}: {sorted(times)[10] / LOOPS * 1e6:.1f} us")
