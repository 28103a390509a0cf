#!/usr/bin/env python3
"""Times in PyTorch the work of the book's rows, for a column beside them. Optional; needs PyTorch and an NVIDIA GPU.

    python3 book/peers/pytorch.py --out pytorch.json
    report attach pytorch.json --into results.json

A row is named by its identifier and has the parameters of the suite `full` (with `--quick`, of `quick`): a ratio is
shown only where both programs ran the same. Rows that are compared are sampled in turn, in random order within each
round, after a round of warm-up that is not kept. All samples are kept, in seconds, in order.

What it does not measure: rows that need a stream held by a gate or kept busy for a known time, for which PyTorch has no
public call, and differences.
"""

import argparse
import datetime
import json
import platform
import random
import subprocess
import sys
import time

import pytorch_rows

SCHEMA_VERSION = 1
WARMUP = 1
# Rounds that are kept although the time is up: fewer give no interval.
LEAST = 6

FULL = {"samples": 30, "seconds": 5.0, "idle_iters": 1000, "loop_iters": 1000, "draws": 50_000_000, "iters": 100, "steps": 100}
QUICK = {"samples": 15, "seconds": 1.0, "idle_iters": 200, "loop_iters": 200, "draws": 10_000_000, "iters": 20, "steps": 20}


class Bench:
    """Samples cases in turn and keeps a row for each."""

    def __init__(self, torch, device, plan):
        self.torch, self.device, self.plan = torch, device, plan
        self.rows = []
        self.order = random.Random(0)

    def synchronize(self):
        self.torch.cuda.synchronize(self.device)

    def host_timed(self, region, per=1):
        """A case that takes the host's time in `region`; what the region returns is dropped outside of the time."""

        def case():
            start = time.perf_counter()
            made = region()
            seconds = time.perf_counter() - start
            del made
            return seconds / per

        return case

    def read_timed(self, make, read, settle):
        """A case that takes the host's time in `read` of what `make` enqueued, which is pending or, settled, done."""

        def case():
            made = make()
            if settle:
                self.synchronize()
            start = time.perf_counter()
            seen = read(made)
            seconds = time.perf_counter() - start
            del seen
            return seconds

        return case

    def device_timed(self, region, per=1):
        """A case that takes the time between two events around `region` on the current stream."""
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))

        def case():
            start.record()
            made = region()
            end.record()
            end.synchronize()
            del made
            return start.elapsed_time(end) / 1e3 / per

        return case

    def group(self, parameters, make, clocks=None):
        """Samples the cases that `make` gives by their identifiers; one that fails leaves the group's rows as failed."""
        print(", ".join(f"{name} {value}" for name, value in parameters.items()), file=sys.stderr)
        self.torch.cuda.empty_cache()
        cases = {}
        try:
            cases = make()
            samples, stopped_by = self.sample(cases)
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            print(f"  failed: {reason}", file=sys.stderr)
            for name in cases:
                self.leave(name, parameters, {"failed": {"reason": reason}})
            return
        for name, values in samples.items():
            clock = (clocks or {}).get(name, "host-clock")
            self.leave(name, parameters, {"measured": {"instrument": clock, "samples": values, "stopped_by": stopped_by}})

    def sample(self, cases):
        samples = {name: [] for name in cases}
        for turn in range(WARMUP + self.plan["samples"]):
            if turn == WARMUP:
                began = time.perf_counter()
            elif turn >= WARMUP + LEAST and time.perf_counter() - began > self.plan["seconds"]:
                return samples, "time-limit"
            names = list(cases)
            self.order.shuffle(names)
            for name in names:
                self.synchronize()
                value = cases[name]()
                if turn >= WARMUP:
                    samples[name].append(value)
        return samples, "samples"

    def leave(self, name, parameters, outcome, unit="seconds"):
        self.rows.append({"id": name, "parameters": dict(parameters), "unit": unit, "outcome": outcome})

    def rate(self, name, of, parameters, amount):
        """Leaves `amount` over the samples of the row `of`."""
        row = next((row for row in self.rows if row["id"] == of and row["parameters"] == parameters), None)
        if row and "measured" in row["outcome"]:
            samples = [amount / sample for sample in row["outcome"]["measured"]["samples"]]
            derived = {"derivation": "computation", "formula": "bytes / done", "samples": samples}
            self.leave(name, parameters, {"derived": derived}, "bytes-per-second")


def fingerprint(uuid):
    """Tells the GPUs of one machine apart and is no serial number: FNV-1a, 32 bits, of the UUID as text."""
    code = 0x811C9DC5
    for byte in uuid.lower().removeprefix("gpu-").encode():
        code = (code ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{code:08x}"


def driver_version():
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return None
    return said[0] if said else None


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), None)
    except OSError:
        return None


def main():
    parser = argparse.ArgumentParser(description="Times in PyTorch the work of the book's rows.")
    parser.add_argument("--quick", action="store_true", help="the parameters and the sampling of the suite `quick`")
    parser.add_argument("--device", default="cuda:0", help="the GPU, as PyTorch names it")
    parser.add_argument("--out", metavar="FILE", help="where to write the JSON; else it is printed")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        sys.exit(f"no PyTorch in this environment: {error}")
    if not torch.cuda.is_available():
        sys.exit(f"PyTorch {torch.__version__} sees no CUDA GPU here, and the rows are about one: nothing was measured")
    device = torch.device(arguments.device)
    if device.type != "cuda" or (device.index or 0) >= torch.cuda.device_count():
        sys.exit(f"there is no GPU `{arguments.device}`: PyTorch sees cuda:0 to cuda:{torch.cuda.device_count() - 1}")
    device = torch.device("cuda", device.index or 0)
    torch.cuda.set_device(device)
    # True fp32 products, as the rows are defined.
    torch.set_float32_matmul_precision("highest")
    began = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    bench = Bench(torch, device, {**(QUICK if arguments.quick else FULL), "inputs": 64})
    for experiment in pytorch_rows.EXPERIMENTS:
        try:
            experiment(bench)
        except RuntimeError as error:
            print(f"{experiment.__name__} ended early: {error}", file=sys.stderr)
    properties = torch.cuda.get_device_properties(device)
    uuid = getattr(properties, "uuid", None)
    peer = {
        "schema_version": SCHEMA_VERSION,
        "name": "PyTorch",
        "started": began,
        "versions": [
            ["PyTorch", torch.__version__],
            ["CUDA", torch.version.cuda or "none"],
            ["Python", platform.python_version()],
        ],
        "machine": {
            "model": properties.name,
            "fingerprint": fingerprint(str(uuid)) if uuid is not None else None,
            "driver": driver_version(),
            "cpu": processor(),
        },
        "rows": bench.rows,
    }
    text = json.dumps(peer, indent=1, allow_nan=False)
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
