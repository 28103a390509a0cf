"""A training loop with seven waits, which are removed one after the other (the book's listing
`training_iteration.py`).

    python loop.py time FILE    times it with so many waits removed, without an audit
    python loop.py audited      runs it with so many waits removed, each in a file of its own name, so that an audit tells them apart
    python loop.py with         runs it with all waits
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
ITERATIONS = 40
WARM = 5


class Loop:
    """What an iteration works on. Each iteration between two synchronizations has a buffer of its own."""

    def __init__(self, pinned):
        torch.manual_seed(0)
        layers = [torch.nn.Linear(1024, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 2048), torch.nn.ReLU()]
        self.model = torch.nn.Sequential(*layers, torch.nn.Linear(2048, 10)).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.batches = torch.randn(8, 1024, 1024)
        self.buffers = torch.empty(ITERATIONS, 1024, 1024, pin_memory=pinned)
        self.labels = torch.randint(0, 10, (1024,), device="cuda")
        self.mask = torch.arange(1024, device="cuda") % 4 != 0
        self.count = self.mask.sum()
        self.scale = torch.tensor([1.0, 0.5], device="cuda")
        self.is_bad = torch.zeros((), dtype=torch.bool, device="cuda")
        self.right_there = torch.zeros((), dtype=torch.int64, device="cuda")
        self.total_there = torch.zeros((), device="cuda")
        self.right, self.total = 0, 0.0

    def prepare(self, number):
        """The host's own work, which can go on while the GPU computes."""
        return torch.mul(self.batches[number % 8], 0.99, out=self.buffers[number % ITERATIONS])


def body(removed):
    """The iteration, compiled under a name that says what is removed."""
    path = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../../book/src/listings/training_iteration.py"))
    names = {}
    with open(path) as file:
        exec(compile(file.read(), f"{path[:-3]}-{removed}.py", "exec"), names)
    return lambda loop, number: names["iteration"](loop, number, removed)


def run(removed, loop, iterations):
    once = body(removed)
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
    loops = [Loop(False), Loop(True)]
    if what == "time":
        with open(sys.argv[2], "w") as file:
            json.dump({"names": REMOVED, "iterations": ITERATIONS, "seconds": measure(loops)}, file)
    elif what == "audited":
        for removed in range(len(REMOVED)):
            run(removed, loops[removed >= 6], ITERATIONS)
    else:
        removed = 0 if what == "with" else len(REMOVED) - 1
        run(removed, loops[removed >= 6], ITERATIONS)


main(sys.argv[1])
