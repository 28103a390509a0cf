#!/usr/bin/env python3
"""Measures the rows of a plan in PyTorch, as a second system beside `report`. Needs PyTorch and an NVIDIA GPU.

    report plan --suite quick > plan.json
    python3 book/peers/pytorch.py --plan plan.json --out answer.json

One process is one run. The plan states rows, parameters, sampling and device; rows with no meaning in PyTorch are left
out of the answer, and rows that are computed from others, which `report` does when it reads the answer. Rows that a reader
compares are sampled in turn, in random order within each round. Whether a call waits is seen behind a closed gate; what a
call does inside is taken from PyTorch's profiler, in rows that run last.

With `--out`, the answer is written anew after each group, so that it holds what was measured however the process ends.

Exit codes: 0 means success; 1 means that the run ended early, and the answer holds the rest; 2 means that the plan is
wrong, or that there is no PyTorch or no such GPU, and nothing ran; 130 means interrupted (Ctrl-C, or a termination): the
rows that were not reached say so.
"""

import argparse
import contextlib
import datetime
import os
import signal
import sys
import threading

# Leaves no compiled files beside the script, which may lie in a source tree.
sys.dont_write_bytecode = True

from pytorch_system import catalogue, experiments, machine, plan  # noqa: E402, F401
from pytorch_system.answer import Answer  # noqa: E402
from pytorch_system.lab import Lab  # noqa: E402
from pytorch_system.run import DeviceLost, Run  # noqa: E402
from pytorch_system.sampling import one_line  # noqa: E402

USAGE, ENDED_EARLY, INTERRUPTED = 2, 1, 130


class Refused(Exception):
    """Nothing can be measured here."""


def end_with_input():
    """Ends the process, whatever it is at, when standard input ends: nobody is left who would take the answer."""

    def wait():
        # What cannot be read has ended, too.
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        os._exit(INTERRUPTED)

    threading.Thread(target=wait, daemon=True).start()


def load_torch():
    try:
        import torch
    except (ImportError, OSError) as error:
        raise Refused(f"PyTorch is not installed in this environment: {one_line(error)}") from error
    return torch


def open_device(torch, index):
    """The GPU of this number, ready for work."""
    if not torch.cuda.is_available():
        raise Refused(f"PyTorch {torch.__version__} finds no CUDA GPU here, and the rows need one: nothing was measured")
    count = torch.cuda.device_count()
    if index >= count:
        there = "cuda:0" if count == 1 else f"cuda:0 to cuda:{count - 1}"
        raise Refused(f"there is no GPU cuda:{index}: PyTorch finds {there}")
    device = torch.device("cuda", index)
    try:
        torch.cuda.set_device(device)
        torch.zeros(1, device=device)
        torch.cuda.synchronize(device)
    except RuntimeError as error:
        raise Refused(f"the GPU cuda:{index} cannot be used: {one_line(error)}") from error
    # Full fp32 precision in matmuls, as the rows are defined.
    torch.set_float32_matmul_precision("highest")
    return device


def start_threads(torch, device):
    """PyTorch's threads for the host's work and for gradients start with the first of it, and a thread has the processors of
    the one that starts it: they start before the measuring thread is kept on one."""
    torch.ones(1 << 22).sum()
    torch.ones(1, device=device, requires_grad=True).sum().backward()


def check(planned):
    """Says what would be measured; needs no PyTorch."""
    groups, refused = catalogue.divide(planned.rows)
    known = {row.key for group in groups for row in group.rows} | set(refused)
    for group in groups:
        print(f"measured: {group.title}")
    for row in planned.rows:
        if row.key in refused:
            print(f"refused: {row.title}: {refused[row.key]}")
        elif row.key not in known and row.clock is not None:
            print(f"left out: {row.title}")


def measure(planned, out):
    torch = load_torch()
    device = open_device(torch, planned.device)
    start_threads(torch, device)
    started = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    answer = Answer(planned, started, machine.versions(torch), machine.describe(torch, device))
    interrupts = []
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: interrupts.append(True))
    run = Run(planned, Lab(torch, device), answer, lambda: bool(interrupts), lambda: out and answer.write(out))
    try:
        run.measure()
    except DeviceLost as error:
        print(f"the run ended early, since CUDA cannot be used any more: {error}", file=sys.stderr)
        return ENDED_EARLY
    finally:
        if not out:
            print(answer.text(), end="")
    return INTERRUPTED if interrupts else 0


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Measures the rows of a plan in PyTorch.")
    parser.add_argument("--plan", metavar="FILE", help="the rows to measure, as `report plan` writes them")
    parser.add_argument("--out", metavar="FILE", help="where to write the answer (JSON); without it, it is printed")
    parser.add_argument("--attended", action="store_true",
                        help="end when standard input ends, as it does with the program that started this one")
    parser.add_argument("--check", action="store_true", help="only say which rows would be measured")
    parser.add_argument("--list", action="store_true", help="only list the identifiers of the rows that are known here")
    given = parser.parse_args(arguments)
    if given.list:
        print("\n".join(sorted(catalogue.RECIPES)))
        return 0
    if not given.plan:
        parser.error("state --plan FILE")
    try:
        if given.attended:
            end_with_input()
        planned = plan.read(given.plan)
        if given.check:
            check(planned)
            return 0
        return measure(planned, given.out)
    except (Refused, plan.PlanError) as error:
        print(error, file=sys.stderr)
        return USAGE
    except OSError as error:
        print(f"the answer cannot be written: {error}", file=sys.stderr)
        return ENDED_EARLY


if __name__ == "__main__":
    sys.exit(main())
