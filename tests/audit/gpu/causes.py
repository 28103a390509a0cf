"""Loops that are fed well, but for one planted cause each: `python causes.py CAUSE`. The line that leaves the GPU idle ends in
`# IDLE`, with the cause as `report audit --json` names it. Held to that by `causes_held.py`.

    steps         none: the GPU is fed well
    wait          the host reads a value, and prepares the next iteration only then
    loader        a data loader whose workers take longer than the GPU
    sleep         the host sleeps
    busy          other processes on the same processor
    lock          another thread holds the interpreter's lock
    pages         memory that is new in each iteration
    launches      many small kernels
    own           the host computes in Python
    queue         a thread that fills a queue too slowly
    pipe          a process that writes to a pipe too slowly
"""
import os
import queue
import subprocess
import sys
import threading
import time

import torch

ITERATIONS = 150
SIZE = 4096


class Work:
    """Some 6 ms of work for the GPU, in a few launches."""

    def __init__(self):
        self.a = torch.randn(SIZE, SIZE, device="cuda", dtype=torch.float16) / 64
        self.b = torch.randn(SIZE, SIZE, device="cuda", dtype=torch.float16) / 64
        self.out = torch.empty_like(self.a)
        self.marks = [torch.cuda.Event() for _ in range(2)]

    def enqueue(self, number):
        for _ in range(20):
            torch.matmul(self.a, self.b, out=self.out)
            torch.tanh(self.out, out=self.out)
        # The host stays at most two iterations ahead, as the queue of launches would make it.
        self.marks[number % 2].record()

    def stay_near(self, number):
        self.marks[(number + 1) % 2].synchronize()


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return ITERATIONS * 8

    def __getitem__(self, index):
        time.sleep(0.008)
        return torch.zeros(16)


def busy(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def steps(work):
    for number in range(ITERATIONS):
        work.enqueue(number)
        work.stay_near(number)


def wait(work):
    for number in range(ITERATIONS):
        work.enqueue(number)
        value = work.out[0, 0].item()
        busy(0.0003)
    return value


def loader(work):
    loads = torch.utils.data.DataLoader(Slow(), batch_size=8, num_workers=2)
    for number, batch in enumerate(loads):  # IDLE loader
        work.enqueue(number)
        work.stay_near(number)


def sleep(work):
    for number in range(ITERATIONS):
        work.enqueue(number)
        work.stay_near(number)
        time.sleep(0.02)  # IDLE sleep


def own(work):
    for number in range(ITERATIONS):
        work.enqueue(number)
        work.stay_near(number)
        total = 0
        for value in range(250_000):
            total += value * value  # IDLE own
    return total


def lock(work):
    def hold():
        while going:
            sum(value * value for value in range(2_000))  # IDLE interpreter-lock

    going = [True]
    threading.Thread(target=hold, daemon=True).start()
    # Each operation hands the lock over, which takes 5 ms.
    for number in range(ITERATIONS // 5):
        work.enqueue(number)
        work.stay_near(number)
    going.clear()


def pages(work):
    for number in range(ITERATIONS):
        work.enqueue(number)
        work.stay_near(number)
        torch.ones(60_000_000 + number)  # IDLE page-fault


def launches(work):
    small = torch.zeros(64, device="cuda")
    for number in range(ITERATIONS):
        work.enqueue(number)
        work.stay_near(number)
        for _ in range(2_000):
            small.add_(1.0)  # IDLE launch


def queued(work):
    def fill():
        for number in range(ITERATIONS):
            time.sleep(0.02)
            batches.put(number)

    batches = queue.Queue(4)
    threading.Thread(target=fill, daemon=True).start()
    for number in range(ITERATIONS):
        batches.get()  # IDLE lock
        work.enqueue(number)
        work.stay_near(number)


def pipe(work):
    code = f"import sys, time\nfor _ in range({ITERATIONS}):\n    time.sleep(0.02)\n    print('batch', flush=True)"
    writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    for number in range(ITERATIONS):
        writer.stdout.readline()  # IDLE input-output
        work.enqueue(number)
        work.stay_near(number)


def neighbours(work):
    processor = next(iter(os.sched_getaffinity(0)))
    os.sched_setaffinity(0, {processor})
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]  # IDLE descheduled
    try:
        for number in range(ITERATIONS):
            work.enqueue(number)
            work.stay_near(number)
            busy(0.004)
    finally:
        for other in others:
            other.kill()


def main(cause):
    work = Work()
    for number in range(20):
        work.enqueue(number)
    torch.cuda.synchronize()
    {"queue": queued, "busy": neighbours}.get(cause, globals().get(cause))(work)
    torch.cuda.synchronize()


if __name__ == "__main__":
    main(sys.argv[1])
