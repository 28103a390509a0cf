"""Waits in functions of several lines; `functions.py FILE` also writes a trace of PyTorch's profiler."""

import contextlib
import sys

import torch
from torch.profiler import ProfilerActivity, profile


def read_once(x):
    y = x @ x
    z = y.sum()
    return z.item()


def read_in_a_loop(x):
    total = 0.0
    for _ in range(2):
        y = x @ x
        total += y.mean().item()
    return total


def index(x):
    y = x @ x
    mask = y > 0
    return mask.nonzero()


def main():
    x = torch.ones(4096, 4096, device="cuda")
    torch.cuda.synchronize()
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    profiled = profile(activities=activities, with_stack=True) if len(sys.argv) > 1 else contextlib.nullcontext()
    with profiled:
        for _ in range(5):
            read_once(x)
            read_in_a_loop(x)
            index(x)
    if len(sys.argv) > 1:
        profiled.export_chrome_trace(sys.argv[1])


main()
