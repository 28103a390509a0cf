#!/usr/bin/env python3
"""Compares every operation with PyTorch's, over types and sizes, in paired rounds. Needs PyTorch and an NVIDIA GPU.

    cargo build --release --example sweep
    python3 book/peers/sweep.py target/release/examples/sweep --out sweep.json

A cell is an operation with a type and sizes. In each round both programs run it, one after the other, in an order that
alternates: the ratio of a round is theirs alone, whatever the clock rate. The interval of a cell's ratio goes from one
of the ratios to another, by their order, and holds their median in at least 95 % of such samples, whatever the distribution. A cell
is within the bar if the upper end of the interval is at most 1.05, or 1.10 where PyTorch takes less than 20 us. Cells above
the bar are measured once more at the end, with more rounds; then the second measurement counts.

An operation that only enqueues is timed by a loop of it that ends with one synchronization; one that waits, by itself.

On an H200 with PyTorch 2.11 three kinds of cells are above the bar, for these reasons:

- matmul 3001 in fp16 and bf16 (1.14): PyTorch lets cuBLASLt round partial sums to 16 bits. Without that
  (`allow_fp16_reduced_precision_reduction = False`) both take the same time (0.996).
- index_select 100001 x 127 (1.2 to 1.3): the numbers of rows are checked on the host, where one that is wrong is an error of the
  call: 28 us of 117. PyTorch checks them on the device, where such an error ends the context.
- stack of 10000001 (1.10): parts that begin at no multiple of 16 bytes are moved 4 bytes at a time; stack of 10000000 is within.
"""

import argparse
import gc
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time

ROUNDS, ROUNDS_AGAIN = 9, 25
SAMPLE_SECONDS = 2e-3
MAX_RUNS = 300
BAR, BAR_SHORT, SHORT_SECONDS = 1.05, 1.10, 20e-6

LENGTHS = [1000, 10_007, 100_000, 1_000_003, 10_000_000, 10_000_001, 50_000_000, 150_000_001, 400_000_000]
LENGTHS_OF_TRANSFERS = [1000, 100_003, 1_000_000, 10_000_001]
LENGTHS_OF_NONZERO = [*LENGTHS, 262_144, 3_000_000, 25_000_000]
ALL_LENGTHS = ["add_scalar", "multiply_scalar", "affine", "affine_in_place", "add", "subtract", "multiply", "gt", "sum", "mean",
               "any", "full", "normal", "assign"]
# m, k, n
PRODUCTS = [
    (100, 100, 100), (127, 127, 127), (129, 65, 33), (256, 256, 256), (500, 500, 500), (512, 512, 512), (777, 777, 777),
    (1000, 1000, 1000), (1001, 1003, 1005), (1024, 1024, 1024), (1500, 1500, 1500), (2000, 2000, 2000), (2047, 2047, 2047),
    (2048, 2048, 2048), (2500, 2500, 2500), (3000, 3000, 3000), (3001, 3001, 3001), (4000, 4000, 4000), (4096, 4096, 4096),
    (5000, 5000, 5000), (100_000, 64, 64), (65_537, 128, 17), (1_000_000, 8, 8), (64, 100_000, 64), (3, 1_000_003, 5),
    (1, 4096, 4096), (4096, 4096, 1), (4096, 1, 4096), (16, 4096, 4096), (33, 4097, 4096), (8192, 1000, 8), (8, 1000, 8192),
    (2000, 3, 3000), (12_000, 300, 700),
]
PRODUCTS_OF_TWO_BYTES = [(6000, 6000, 6000), (8192, 8192, 8192), (10_000, 10_000, 10_000)]
# height, width, rows taken
GATHERS = [(1000, 1, 1000), (100_000, 3, 50_000), (10_000, 100, 5000), (100_001, 127, 100_001), (1_000_000, 64, 500_000),
           (50_000, 1024, 30_000), (100, 1_000_003, 50), (10_000_000, 1, 5_000_000)]
GATHERS_BY_HOST = [(1000, 64, 3), (10_000, 100, 5000), (100_001, 127, 100_001)]


def cells():
    """All cells: operation, type, sizes."""
    made = [(op, dtype, (n,)) for op in ALL_LENGTHS for dtype in ("fp16", "bf16", "fp32") for n in LENGTHS]
    for n in LENGTHS_OF_NONZERO:
        made += [("nonzero", dtype, (n,)) for dtype in ("fp16", "fp32", "u8")] + [("nonzero_done", "fp32", (n,))]
    made += [("any", "u8", (n,)) for n in LENGTHS]
    made += [("matmul", dtype, sizes) for dtype in ("fp16", "bf16", "fp32", "tf32") for sizes in PRODUCTS]
    made += [("matmul", dtype, sizes) for dtype in ("fp16", "bf16") for sizes in PRODUCTS_OF_TWO_BYTES]
    made += [("gather", dtype, sizes) for dtype in ("fp16", "fp32") for sizes in GATHERS]
    made += [("index_select", "fp32", sizes) for sizes in GATHERS_BY_HOST]
    made += [("stack", "fp32", (n,)) for n in LENGTHS[:7]]
    made += [(op, "fp32", (n,)) for op in ("item", "to_vec", "to_array", "tensor", "copy_from", "copy_to")
             for n in LENGTHS_OF_TRANSFERS]
    made += [("graph", "fp32", (n,)) for n in (1000, 1_000_003)]
    return made


class Ours:
    """The process that `examples/sweep.rs` describes."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise SystemExit(f"{self.process.args[0]} ended at `{line}`")
        if answer.startswith("error"):
            raise RuntimeError(f"syncscope: {answer}")
        return answer

    def prepare(self, op, dtype, sizes):
        self.ask(f"prepare {op} {dtype} {','.join(map(str, sizes))}")

    def sample(self, runs):
        return float(self.ask(f"sample {runs}"))


class Theirs:
    """The same operations in PyTorch, in this process."""

    def __init__(self, torch):
        self.torch, self.device, self.run = torch, torch.device("cuda:0"), None
        self.types = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "tf32": torch.float32,
                      "u8": torch.bool}
        self.one = {dtype: torch.ones((), dtype=t, device=self.device) for dtype, t in self.types.items()}

    def prepare(self, op, dtype, sizes):
        self.run = None
        if math.prod(sizes) >= 10**8:
            self.torch.cuda.empty_cache()
        self.torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
        self.run = self.operation(op, dtype, sizes)

    def operation(self, op, dtype, sizes):
        torch, device, one = self.torch, self.device, self.one[dtype]
        kind = self.types[dtype]

        def normal(*shape):
            if kind is torch.bool:
                return torch.randn(shape, device=device) > 1.0
            return torch.randn(shape, device=device, dtype=kind)

        if op == "matmul":
            m, k, n = sizes
            a, b = normal(m, k), normal(k, n)
            return lambda: a @ b
        if op in ("gather", "index_select"):
            height, width, count = sizes
            x, rows = normal(height, width), torch.arange(count) * 7919 % height
            if op == "index_select":
                return lambda: x.index_select(0, rows.to(device))
            rows = rows.to(device)
            return lambda: x.index_select(0, rows)
        if op == "full":
            return lambda: torch.full(sizes, 3.0, dtype=kind, device=device)
        if op == "normal":
            return lambda: torch.randn(sizes, dtype=kind, device=device)
        if op == "any":
            zeros = torch.zeros(sizes, dtype=kind, device=device)
            return lambda: bool(zeros.any())
        x = normal(*sizes)
        if op in ("add", "subtract", "multiply", "assign", "stack"):
            y, z = normal(*sizes), normal(*sizes) if op == "stack" else None
            return {"add": lambda: x + y, "subtract": lambda: x - y, "multiply": lambda: x * y, "assign": lambda: x.copy_(y),
                    "stack": lambda: torch.stack((x, y, z))}[op]
        if op in ("copy_from", "copy_to"):
            pinned = torch.empty(sizes, dtype=kind, pin_memory=True)
            if op == "copy_from":
                return lambda: x.copy_(pinned, non_blocking=True)
            return lambda: pinned.copy_(x, non_blocking=True)
        if op == "tensor":
            host = x.cpu()
            return lambda: host.to(device)
        if op == "nonzero_done":
            def nonzero_done():
                x.nonzero()
                torch.cuda.synchronize()
            return nonzero_done
        if op == "graph":
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(100):
                    torch.add(one, x, alpha=1.0, out=x)
            return graph.replay
        return {
            "add_scalar": lambda: x + 2.0,
            "multiply_scalar": lambda: x * 2.0,
            # One kernel, as ours is.
            "affine": lambda: torch.add(one, x, alpha=2.0),
            "affine_in_place": lambda: torch.add(one, x, alpha=1.0, out=x),
            "gt": lambda: x > 0.0,
            "sum": lambda: torch.sum(x, dtype=torch.float32),
            "mean": lambda: torch.mean(x, dtype=torch.float32),
            "nonzero": lambda: x.nonzero(),
            "item": lambda: x[0].item(),
            "to_vec": lambda: x.cpu(),
            "to_array": lambda: x.cpu().numpy(),
        }[op]

    def sample(self, runs):
        run, synchronize = self.run, self.torch.cuda.synchronize
        run()
        synchronize()
        start = time.perf_counter()
        for _ in range(runs):
            run()
        synchronize()
        return (time.perf_counter() - start) / runs


def interval(ratios):
    """From the k-th smallest to the k-th largest, with the largest k that holds the median in 95 % of samples."""
    n, ordered = len(ratios), sorted(ratios)
    k, outside = 0, 0.0
    while True:
        outside += 2 * math.comb(n, k) / 2**n
        if outside > 0.05:
            break
        k += 1
    return ordered[max(k - 1, 0)], ordered[n - max(k, 1)]


def measure(ours, theirs, cell, rounds):
    ours.prepare(*cell)
    theirs.prepare(*cell)
    for side in (ours, theirs):
        side.sample(1)
    first = max(ours.sample(1), theirs.sample(1))
    runs = max(1, min(MAX_RUNS, int(SAMPLE_SECONDS / first)))
    pairs = []
    for number in range(rounds):
        if number % 2 == 0:
            mine = ours.sample(runs)
            pairs.append((mine, theirs.sample(runs)))
        else:
            other = theirs.sample(runs)
            pairs.append((ours.sample(runs), other))
    ratios = [mine / other for mine, other in pairs]
    low, high = interval(ratios)
    their_time = statistics.median(other for _, other in pairs)
    return {
        "operation": cell[0], "type": cell[1], "sizes": list(cell[2]), "runs": runs, "pairs": pairs,
        "ours": statistics.median(mine for mine, _ in pairs), "theirs": their_time,
        "ratio": statistics.median(ratios), "low": low, "high": high,
        "bar": BAR_SHORT if their_time < SHORT_SECONDS else BAR,
    }


def line(row):
    sizes = "x".join(map(str, row["sizes"]))
    return (f"{row['operation']:16s}{row['type']:5s}{sizes:>22s}{row['ours'] * 1e6:12.1f}{row['theirs'] * 1e6:12.1f}"
            f"{row['ratio']:8.3f}  [{row['low']:.3f}, {row['high']:.3f}]")


HEAD = f"{'operation':16s}{'type':5s}{'sizes':>22s}{'ours, us':>12s}{'PyTorch, us':>12s}{'ratio':>8s}  interval"


def markdown(rows, failed, left):
    """The table of all cells: those that were measured, and why the others were not."""
    lines = ["| operation | type | sizes | ours, µs | PyTorch, µs | ours / PyTorch | 95 % interval | |",
             "|---|---|---:|---:|---:|---:|---|---|"]
    for row in sorted(rows, key=lambda row: (row["operation"], row["type"], row["sizes"])):
        times = f"{row['ours'] * 1e6:.1f} | {row['theirs'] * 1e6:.1f} | {row['ratio']:.3f}"
        verdict = "within" if row["high"] <= row["bar"] else "above"
        lines.append(f"| {row['operation']} | {row['type']} | {'x'.join(map(str, row['sizes']))} | {times} "
                     f"| {row['low']:.3f} to {row['high']:.3f} | {verdict} |")
    for cell, why in [*((cell, f"failed: {error}") for cell, error in failed), *((cell, "not measured") for cell in left)]:
        lines.append(f"| {cell[0]} | {cell[1]} | {'x'.join(map(str, cell[2]))} | | | | | {why} |")
    return "\n".join(lines)


def keep(out, content, table):
    """Writes `content` as JSON, and the table beside it as Markdown."""
    with open(out, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
    with open(os.path.splitext(out)[0] + ".md", "w", encoding="utf-8") as file:
        file.write(table + "\n")


def main():
    parser = argparse.ArgumentParser(description="Compares every operation with PyTorch's, over types and sizes.")
    parser.add_argument("program", help="the example `sweep`, built")
    parser.add_argument("--out", metavar="FILE", help="where to write all cells with their samples, as JSON; the table goes beside it, as .md")
    parser.add_argument("--only", metavar="TEXT", help="the cells whose operation, or `operation/type`, is this")
    parser.add_argument("--seconds", type=float, default=280.0, help="cells that are not measured by then are listed as such")
    arguments = parser.parse_args()
    import torch

    began = time.perf_counter()
    ours, theirs = Ours(arguments.program), Theirs(torch)
    chosen = [cell for cell in cells() if arguments.only in (None, cell[0], f"{cell[0]}/{cell[1]}")]
    random.Random(0).shuffle(chosen)
    rows, failed, left = {}, [], []
    gc.disable()
    with torch.inference_mode():
        for cell in chosen:
            if time.perf_counter() - began > 0.85 * arguments.seconds:
                left.append(cell)
                continue
            try:
                rows[cell] = measure(ours, theirs, cell, ROUNDS)
            except RuntimeError as error:
                failed.append((cell, str(error).splitlines()[0]))
        for cell in sorted((c for c, row in rows.items() if row["high"] > row["bar"]), key=lambda c: -rows[c]["ratio"]):
            if time.perf_counter() - began < arguments.seconds:
                rows[cell] = {**measure(ours, theirs, cell, ROUNDS_AGAIN), "again": True}
    above = [row for row in rows.values() if row["high"] > row["bar"]]
    if arguments.out:
        content = {"torch": torch.__version__, "device": torch.cuda.get_device_name(0), "cells": list(rows.values()),
                   "failed": failed, "not_measured": left}
        keep(arguments.out, content, markdown(rows.values(), failed, left))
    print(f"{'operation':16s}{'cells':>6s}{'within':>8s}{'median ratio':>14s}{'largest':>9s}")
    for op in sorted({row["operation"] for row in rows.values()}):
        own = [row for row in rows.values() if row["operation"] == op]
        within = sum(row["high"] <= row["bar"] for row in own)
        ratios = [row["ratio"] for row in own]
        print(f"{op:16s}{len(own):6d}{within:8d}{statistics.median(ratios):14.3f}{max(ratios):9.3f}")
    print(f"\nabove the bar:\n{HEAD}")
    for row in sorted(above, key=lambda row: (row["operation"], row["type"], row["sizes"])):
        print(line(row))
    for cell, error in failed:
        print(f"failed: {cell}: {error}")
    if left:
        print(f"not measured for want of time: {len(left)} of {len(chosen)}: {left[:20]}")
    share = (len(rows) - len(above)) / max(1, len(chosen))
    print(f"\n{len(rows) - len(above)} of {len(chosen)} cells within the bar ({100 * share:.1f} %), {len(failed)} failed, "
          f"in {time.perf_counter() - began:.0f} s")
    return 0 if share >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
