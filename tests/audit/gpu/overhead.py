"""What the audit costs launches, ready reads and steps of a training. Two processes share a processor and take turns, so that both
are slow and fast at the same times; how much longer one takes than the other is told before the library is in it and after.

    report audit -- python overhead.py FILE REPORT

Writes {way: [{"launch": 0.012, "read": ..., "step": ..., "us": {"launch": 7.3, ...}}, ...]}, of a pair of processes each.
"""
import ctypes
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time

# The driver would load the library at its first use.
LIBRARY = os.environ.pop("CUDA_INJECTION64_PATH")

import torch

# What the library is told as it comes: where it never does, what is found is the scatter.
WAYS = {
    "never": None,
    "calls-none": {"SYNCSCOPE_AUDIT_ACTIVITY": "none", "SYNCSCOPE_AUDIT_STACKS": "none"},
    "calls-sample": {"SYNCSCOPE_AUDIT_ACTIVITY": "none"},
    "all-sample": {},
    "window": {"SYNCSCOPE_AUDIT_ARMED": "1"},
}
# Fewer launches than the launch queue holds, so that none waits.
COUNTS = {"launch": 100, "read": 50, "step": 1}
ROUNDS = 5
# Clocks rise in the first turns. Between the other parts, the library comes.
PARTS = {"warm": 30, "before": 100, "after": 100}
FORK = multiprocessing.get_context("fork")


def bodies():
    x = torch.zeros(1, device="cuda")
    y = torch.zeros((), device="cuda")
    network = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)]).cuda()
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    inputs = torch.randn(64, 256, device="cuda")

    def step():
        loss = network(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()

    return {"launch": lambda: x.add_(1), "read": y.item, "step": step}


def batch(body, count):
    """Microseconds of one call."""
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(count):
        body()
    return (time.perf_counter() - begun) / count * 1e6


def come(way, report):
    """The library comes into this process. Its threads run on any processor, as they do in other programs."""
    os.environ.update(WAYS[way])
    ctypes.CDLL(LIBRARY).InitializeInjection()
    if way == "window":
        # It has recorded, and has ended that.
        subprocess.run([report, "audit", "now", str(os.getpid()), "--for", "1s"], stdout=subprocess.DEVNULL, check=True)


def take_turns(own, other, took, way, report):
    every = os.sched_getaffinity(0)
    of = bodies()
    for part, turns in PARTS.items():
        if part == "after" and way and WAYS[way] is not None:
            os.sched_setaffinity(0, every)
            come(way, report)
        os.sched_setaffinity(0, [min(every)])
        for turn in range(turns):
            own.acquire()
            for what, body in of.items():
                took[part, what][turn] = batch(body, COUNTS[what])
            other.release()


def pair(way, report):
    """By how much more the first one takes after the library came into it."""
    turns = [FORK.Semaphore(1), FORK.Semaphore(0)]
    took = [{(part, what): FORK.RawArray("d", count) for part, count in PARTS.items() for what in COUNTS} for _ in turns]
    processes = [
        FORK.Process(target=take_turns, args=(turns[0], turns[1], took[0], way, report), daemon=True),
        FORK.Process(target=take_turns, args=(turns[1], turns[0], took[1], None, report), daemon=True),
    ]
    [process.start() for process in processes]
    for process in processes:
        process.join(60)
        if process.exitcode != 0:
            raise SystemExit(f"{way}: a process ended with {process.exitcode}")

    def ratio(part, what):
        return statistics.median(one / other for one, other in zip(took[0][part, what], took[1][part, what]))

    more = {what: ratio("after", what) / ratio("before", what) - 1 for what in COUNTS}
    return {**more, "us": {what: statistics.median(took[0]["before", what]) for what in COUNTS}}


def main(file, report):
    found = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way in WAYS:
            found[way].append(pair(way, report))
    with open(file, "w") as out:
        json.dump(found, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
