"""A training loop with seven waits, which are removed one after the other (the book's listing
`training_iteration.py`).

    python loop.py time FILE    times it with so many waits removed, without an audit
    python loop.py audited      runs it with so many waits removed, each in a file of its own name, so that an audit tells them apart
    python loop.py with         runs it with all waits, for some seconds
    python loop.py without      runs it without
"""
import json
import os
import statistics
import sys
import time

import torch

REMOVED = [
    "as commonly written",
    "no synchronize() at the end",
    "no branch on isnan(loss)",
    "no item() of the accuracy",
    "no item() of the loss",
    "no index by a mask",
    "copy from pinned memory",
    "no tensor of a list",
]
LISTING = "book/src/listings/training_iteration.py"
BATCH = 2048
ITERATIONS = 40
WARM = 5
# How often they run where one of them is audited alone.
AUDITED = 10


class Loop:
    """What an iteration works on. Each iteration between two synchronizations has a buffer of its own."""

    def __init__(self, pinned):
        torch.manual_seed(0)
        layers = [torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 4096), torch.nn.ReLU()]
        self.model = torch.nn.Sequential(*layers, torch.nn.Linear(4096, 10)).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.batches = torch.randn(8, BATCH, 1024)
        self.buffers = torch.empty(ITERATIONS, BATCH, 1024, pin_memory=pinned)
        self.labels = torch.randint(0, 10, (BATCH,), device="cuda")
        self.mask = torch.arange(BATCH, device="cuda") % 4 != 0
        self.count = self.mask.sum()
        self.scale = torch.tensor([1.0, 0.5], device="cuda")
        self.is_bad = torch.zeros((), dtype=torch.bool, device="cuda")
        self.right_there = torch.zeros((), dtype=torch.int64, device="cuda")
        self.total_there = torch.zeros((), device="cuda")
        self.right, self.total = 0, 0.0

    def prepare(self, number):
        """The host's own work, which can go on while the GPU computes."""
        return torch.mul(self.batches[number % 8], 0.99, out=self.buffers[number % ITERATIONS])


def body(removed, name):
    """The iteration, compiled under a name."""
    names = {}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..", LISTING)) as file:
        exec(compile(file.read(), name, "exec"), names)
    return lambda loop, number: names["iteration"](loop, number, removed)


def run(removed, loop, iterations, name=LISTING):
    once = body(removed, name)
    for number in range(iterations):
        with torch.cuda.nvtx.range("iteration"):
            once(loop, number)
    torch.cuda.synchronize()


def measure(loops):
    times = {removed: [] for removed in range(len(REMOVED))}
    for removed in times:
        run(removed, loops[removed >= 6], WARM)
    # In alternation: a drift of the clocks is no gain.
    for _ in range(5):
        for removed, of in times.items():
            begun = time.perf_counter()
            run(removed, loops[removed >= 6], ITERATIONS)
            of.append((time.perf_counter() - begun) / ITERATIONS)
    return [statistics.median(of) for of in times.values()]


def main(what):
    if what in ("with", "without"):
        removed = 0 if what == "with" else len(REMOVED) - 1
        loop = Loop(removed >= 6)
        for _ in range(AUDITED):
            run(removed, loop, ITERATIONS)
    elif what == "time":
        with open(sys.argv[2], "w") as file:
            seconds = measure([Loop(False), Loop(True)])
            json.dump({"names": REMOVED, "iterations": ITERATIONS, "seconds": seconds}, file)
    else:
        loops = [Loop(False), Loop(True)]
        for removed in range(len(REMOVED)):
            # The name says what is removed.
            run(removed, loops[removed >= 6], ITERATIONS, f"{LISTING[:-3]}-{removed}.py")


main(sys.argv[1])
