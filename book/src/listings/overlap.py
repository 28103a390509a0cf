import torch

ELEMENTS = 100_000
ITERATIONS = 6

transfer, compute = torch.cuda.Stream(), torch.cuda.Stream()
batches = [torch.empty(ELEMENTS, pin_memory=True) for _ in range(2)]
buffers = [torch.zeros(ELEMENTS, device="cuda") for _ in range(2)]
filled = [torch.cuda.Event() for _ in range(2)]
used = [torch.cuda.Event() for _ in range(2)]
torch.cuda.synchronize()

sums = []
for iteration in range(ITERATIONS):
    now = iteration % 2
    # Waits until the copy from this host buffer is complete. PyTorch does not do it by itself.
    filled[now].synchronize()
    batches[now].fill_(iteration)

    with torch.cuda.stream(transfer):
        # The copy must not overwrite a buffer that a kernel still reads.
        transfer.wait_event(used[now])
        buffers[now].copy_(batches[now], non_blocking=True)
        filled[now].record()

    with torch.cuda.stream(compute):
        # The kernel must not start before the copy is complete.
        compute.wait_event(filled[now])
        sums.append((buffers[now] * 2).mean())
        used[now].record()

compute.synchronize()
print(torch.stack(sums))
