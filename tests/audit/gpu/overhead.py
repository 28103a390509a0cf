"""What the audit costs launches, ready reads and steps of a training, in one process: all are timed before the library is in it
and after. Two processes differ by more than the library costs, by where their memory lies and on which processor they run.

    report audit --stacks sample -- python overhead.py FILE          the library comes in between
    report audit --stacks sample -- python overhead.py FILE --never  it never does: what is found is the scatter
    report audit --armed -- python overhead.py FILE --window REPORT  it is armed, and has recorded for a second before "after"
"""
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time

# The driver would load the library at its first use.
LIBRARY = os.environ.pop("CUDA_INJECTION64_PATH")
# A thread that moves from processor to processor hides a difference of a few percent; the threads of CUPTI need another one.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])

import torch

# Fewer launches than the launch queue holds, so that none waits.
COUNTS = {"launch": 500, "read": 500, "step": 10}
BATCHES = 100

x = torch.zeros(1, device="cuda")
y = torch.zeros((), device="cuda")
network = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)]).cuda()
optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
batch_of = torch.randn(64, 256, device="cuda")


def step():
    loss = network(batch_of).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()


BODIES = {"launch": lambda: x.add_(1), "read": y.item, "step": step}


def batch(what):
    """Microseconds of one call."""
    body, count = BODIES[what], COUNTS[what]
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(count):
        body()
    return (time.perf_counter() - begun) / count * 1e6


def times():
    """Medians of batches, which are taken in turn."""
    taken = [{what: batch(what) for what in BODIES} for _ in range(BATCHES)]
    return {what: statistics.median(batch[what] for batch in taken) for what in BODIES}


# Clocks rise, and memory is touched.
times()
before = times()
if "--never" not in sys.argv:
    ctypes.CDLL(LIBRARY).InitializeInjection()
if "--window" in sys.argv:
    now = subprocess.Popen([sys.argv[-1], "audit", "now", str(os.getpid()), "--for", "1s"], stdout=subprocess.DEVNULL)
    while now.poll() is None:
        batch("launch")
    assert now.returncode == 0
after = times()
with open(sys.argv[1], "w") as file:
    json.dump({"before": before, "after": after}, file)
