"""Training loops that lose time at one line, which ends in `# LOST`, and the same loops mended there.

    python gains.py NAME                the loop as it is
    python gains.py NAME pair FILE      both by turns, three times each: {"with": [ms, ...], "without": [ms, ...]}

With SEED in the environment, the device's work and the host's are longer or shorter, each by its own factor of 0.5 to 2: the loops
are others for each seed. The milliseconds are those of an iteration. What the audit of a loop says that an iteration takes without its line is held to
these by `gains_held.py`.
"""
import json
import mmap
import os
import queue
import random
import sys
import tempfile
import threading
import time

import numpy
import torch

WARM = 20
# By how much the device and the host work longer than it is written.
DEVICE, HOST = 1.0, 1.0


class Network:
    """A network that trains for some milliseconds an iteration, launched in less time than it takes. It waits for its memory:
    where a device multiplies matrices without a pause, its power limit makes it slower, and a loop that is mended pauses less."""

    def __init__(self, width=4096, layers=6, batch=16384):
        batch = int(batch * DEVICE)
        self.layers = [torch.randn(width, device="cuda", dtype=torch.float16) for _ in range(layers)]
        self.x = torch.randn(batch, width, device="cuda", dtype=torch.float16)
        self.out = None
        self.marks = [torch.cuda.Event() for _ in range(2)]
        self.number = 0

    def train(self, x=None, repeat=3):
        out = self.x if x is None else x
        for _ in range(repeat):
            for layer in self.layers:
                out = torch.tanh(out + layer)
        self.out = out
        self.loss = out[:64].float().square().mean()
        return self.loss

    def stay_near(self):
        """The host stays at most two iterations ahead, as the queue of launches would make it."""
        self.marks[self.number % 2].record()
        self.number += 1
        self.marks[self.number % 2].synchronize()


def busy(milliseconds):
    end = time.perf_counter() + HOST * milliseconds / 1e3
    while time.perf_counter() < end:
        pass


class Samples(torch.utils.data.Dataset):
    def __init__(self, milliseconds):
        self.milliseconds = milliseconds

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        busy(self.milliseconds)
        return torch.zeros(64)


def item(net, mended):
    while True:
        loss = net.train()
        if not mended:
            loss.item()  # LOST
        busy(1.0)
        yield net.stay_near() if mended else None


def item_of_small(net, mended):
    small = Network(256, 12, 64)
    while True:
        loss = small.train()
        if not mended:
            loss.item()  # LOST
        yield small.stay_near() if mended else None


def synchronize(net, mended):
    while True:
        net.train()
        busy(0.5)
        if not mended:
            torch.cuda.synchronize()  # LOST
        busy(1.5)
        yield net.stay_near() if mended else None


def metrics(net, mended):
    total = torch.zeros((), device="cuda" if mended else "cpu")
    while True:
        net.train()
        if mended:
            total += net.out[:64].float().sum()
        else:
            total += net.out[:64].cpu().float().sum()  # LOST
        yield net.stay_near()


def mask(net, mended):
    while True:
        net.train()
        if mended:
            torch.where(net.out[:64] > 0, net.out[:64], 0).sum()
        else:
            net.out[:64][net.out[:64] > 0].sum()  # LOST
        busy(1.0)
        yield net.stay_near()


def sleep(net, mended):
    while True:
        net.train()
        if not mended:
            time.sleep(0.005 * HOST)  # LOST
        yield net.stay_near()


def loader(net, mended):
    ahead = {"num_workers": 4, "prefetch_factor": 4} if mended else {}
    for _ in torch.utils.data.DataLoader(Samples(1.0), batch_size=8, **ahead):  # LOST
        net.train()
        yield net.stay_near()


def own(net, mended):
    done = sum(value * value for value in range(int(60_000 * HOST)))
    while True:
        net.train()
        if not mended:
            done = sum(value * value for value in range(int(60_000 * HOST)))  # LOST
        yield net.stay_near()
    return done


def upload(net, mended):
    pageable = torch.zeros(int((1 << 18) * HOST))
    pinned = pageable.pin_memory()
    while True:
        if mended:
            pinned.to("cuda", non_blocking=True)
        else:
            pageable.to("cuda")  # LOST
        net.train()
        yield net.stay_near()


def cache(net, mended):
    while True:
        torch.empty(256 << 20, device="cuda")
        net.train()
        if not mended:
            torch.cuda.empty_cache()  # LOST
        yield net.stay_near()


def parameters(net, mended):
    many = [torch.zeros(1_000, device="cuda") for _ in range(int(600 * HOST))]
    while True:
        net.train()
        if mended:
            torch._foreach_add_(many, 1.0)
        else:
            for one in many:
                one.add_(1.0)  # LOST
        yield net.stay_near()


def chain(net, mended):
    small, count = torch.zeros(1_000, device="cuda"), int(1_000 * HOST)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            small.add_(1.0)
    while True:
        net.train()
        if mended:
            graph.replay()
        else:
            for _ in range(count):
                small.add_(1.0)  # LOST
        yield net.stay_near()


def lock(net, mended):
    def hold():
        while going:
            if mended:
                time.sleep(0.01)
            else:
                sum(value * value for value in range(int(2_000 * HOST)))  # LOST

    going = [True]
    threading.Thread(target=hold, daemon=True).start()
    try:
        while True:
            net.train(repeat=1)
            yield net.stay_near()
    finally:
        going.clear()


def queued(net, mended):
    def fill():
        while going:
            time.sleep(0.001 if mended else 0.008 * HOST)
            try:
                batches.put(1, timeout=1)
            except queue.Full:
                pass

    going, batches = [True], queue.Queue(4)
    threading.Thread(target=fill, daemon=True).start()
    try:
        while True:
            batches.get()  # LOST
            net.train()
            yield net.stay_near()
    finally:
        going.clear()


def pages(net, mended):
    count, page = int((96 << 20) * HOST), mmap.PAGESIZE
    kept = numpy.zeros(count, dtype=numpy.uint8)
    while True:
        net.train()
        if mended:
            kept[::page] = 1
        else:
            numpy.zeros(count, dtype=numpy.uint8)[::page] = 1  # LOST
        yield net.stay_near()


def disk(net, mended):
    written = b"x" * int(4_000_000 * HOST)
    with tempfile.NamedTemporaryFile(buffering=0) as file:
        while True:
            net.train()
            file.seek(0)
            file.write(written)
            if not mended:
                os.fsync(file.fileno())  # LOST
            yield net.stay_near()


def clip(net, mended):
    while True:
        net.train()
        norms = torch._foreach_norm(net.layers)
        norm = torch.stack(norms).norm()
        if mended:
            torch._foreach_mul_(net.layers, 1.0 / torch.clamp(norm.half(), min=1e4))
        elif norm.item() > 1e9:  # LOST
            raise SystemExit("the norm is too large")
        busy(0.7)
        yield net.stay_near()


def streams(net, mended):
    beside, done = torch.cuda.Stream(), torch.cuda.Event()
    while True:
        with torch.cuda.stream(beside):
            loaded = net.x * 2
            done.record()
        if mended:
            torch.cuda.current_stream().wait_event(done)
        else:
            done.synchronize()  # LOST
        net.train(loaded)
        beside.wait_stream(torch.cuda.current_stream())
        busy(0.5)
        yield net.stay_near() if mended else None


def decisions(net, mended):
    while True:
        for _ in range(4):
            loss = net.train(repeat=1)
            if not mended:
                if bool(loss > 1e9):  # LOST
                    raise SystemExit("the loss is too large")
            busy(0.4)
        yield net.stay_near() if mended else None


def constant(net, mended):
    values = list(range(64))
    made = torch.tensor(values, device="cuda", dtype=torch.float16)
    while True:
        net.train()
        weights = made if mended else torch.tensor(values, device="cuda", dtype=torch.float16)  # LOST
        net.out[:, :64].mul_(weights)
        busy(1.0)
        yield net.stay_near()


NAMES = "item item_of_small synchronize metrics mask sleep loader own upload cache parameters chain lock queued pages disk clip streams decisions constant".split()


def timed(name, mended, seconds):
    """The milliseconds of an iteration, over so many seconds."""
    loop = globals()[name](Network(), mended)
    for _ in range(WARM):
        next(loop)
    torch.cuda.synchronize()
    begun, count = time.perf_counter(), 0
    while time.perf_counter() < begun + seconds:
        next(loop)
        count += 1
    torch.cuda.synchronize()
    took = time.perf_counter() - begun
    loop.close()
    return took / count * 1e3


def main(name, pair=None, file=None):
    if seed := os.environ.get("SEED"):
        drawn = random.Random(f"{seed} {name}")
        globals().update(DEVICE=2 ** drawn.uniform(-1, 1), HOST=2 ** drawn.uniform(-1, 1))
    if pair is None:
        print(f"{timed(name, False, 2.5):.3f}")
        return
    times = {"with": [], "without": []}
    for _ in range(3):
        times["with"].append(timed(name, False, 0.5))
        times["without"].append(timed(name, True, 0.5))
    with open(file, "w", encoding="utf-8") as out:
        json.dump(times, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
