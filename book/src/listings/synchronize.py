import time

import torch

producer, consumer = torch.cuda.Stream(), torch.cuda.Stream()
shared = torch.zeros(1024, device="cuda")
copy = torch.zeros(1024, device="cuda")
# CUDA loads a kernel at its first launch, which would take longer than the work below.
copy.copy_(shared.add_(0))
torch.cuda.synchronize()

# The producer is busy first, and then writes.
written = torch.cuda.Event()
with torch.cuda.stream(producer):
    torch.cuda._sleep(10_000_000)
    shared.add_(1)
    written.record()

# The consumer waits on the device. The host goes on.
# Without the first of these lines the copy might contain zeros.
with torch.cuda.stream(consumer):
    consumer.wait_event(written)
    copy.copy_(shared)
print(f"written yet: {written.query()}")

# Synchronizes one stream. `torch.cuda.synchronize()` waits for all streams.
start = time.perf_counter()
consumer.synchronize()
wait = time.perf_counter() - start
print(f"waited {wait:.6f} s for {copy[0].item()}")
