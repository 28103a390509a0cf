"""A training loop on two GPUs, of which one rank may be late: `LATE=1 torchrun --nproc-per-node 2 late.py [sleep|own] [STEPS]`. It
then sleeps or computes for some milliseconds in each step, at the line that ends in `# LATE: sleep` or `# LATE: own`. Without
LATE, both are equal.
"""
import os
import sys
import time

import torch
import torch.distributed as distributed

HOW = sys.argv[1] if len(sys.argv) > 1 else "sleep"
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 200


def main():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)]).cuda()
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.randn(512, 2048, device="cuda")
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            loss.item()
        if step == 20 and rank == 0:
            print("steady", flush=True)
        if os.environ.get("LATE") == str(rank):
            if HOW == "sleep":
                time.sleep(0.004)  # LATE: sleep
            else:
                sum(value * value for value in range(60_000))  # LATE: own
    torch.cuda.synchronize()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
