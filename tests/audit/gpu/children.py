"""Processes that a program starts, with waits of their own: `torchrun --nproc-per-node 2 children.py`. Each of the two has a
data loader with two workers, which do not use CUDA, and starts one more process that does.
"""
import os

import torch
import torch.multiprocessing as multiprocessing


def beside():
    values = torch.ones(1 << 20, device="cuda")
    values.sum()  # The code of the kernels is loaded before work is pending: loading may wait for it.
    torch.cuda._sleep(18_000_000)
    return values.sum().item()  # waits in the process that was started


class Batches(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, number):
        return torch.full((1024,), float(number))


def main():
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
    total = torch.zeros((), device="cuda")
    total += torch.zeros(1024, device="cuda").sum()
    for batch in torch.utils.data.DataLoader(Batches(), batch_size=2, num_workers=2, pin_memory=True):
        torch.cuda._sleep(18_000_000)
        total += batch.to("cuda", non_blocking=True).sum()
        total.item()  # waits in each iteration
    started = multiprocessing.get_context("spawn").Process(target=beside)
    started.start()
    started.join()


if __name__ == "__main__":
    main()
