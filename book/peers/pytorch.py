#!/usr/bin/env python3
"""Times the work of the book's rows in PyTorch, for a column in its tables. Optional; needs PyTorch and an NVIDIA GPU.

    python3 book/peers/pytorch.py --out pytorch.json
    report attach pytorch.json --into results.json

A row has the identifier of the book's row and the parameters of the suite `full` (with `--quick`, of `quick`). The
book shows a ratio only where both programs ran with the same parameters. Compared rows are sampled alternately, in
random order within each round, after one warm-up round that is not kept. All samples are kept, in seconds, in order.

It does not measure rows that need a closed gate or a stream that is busy for a known time, because PyTorch has no
public call for these. It does not measure differences.
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
# The fewest rounds, whatever the time limit: fewer samples have no interval.
MINIMUM = 6

FULL = {"samples": 30, "seconds": 5.0, "idle_iters": 1000, "loop_iters": 1000, "draws": 50_000_000, "iters": 100, "steps": 100}
QUICK = {"samples": 15, "seconds": 1.0, "idle_iters": 200, "loop_iters": 200, "draws": 10_000_000, "iters": 20, "steps": 20}


class Bench:
    """Samples cases alternately and keeps a row for each."""

    def __init__(self, torch, device, plan):
        self.torch, self.device, self.plan = torch, device, plan
        self.rows = []
        self.order = random.Random(0)

    def synchronize(self):
        self.torch.cuda.synchronize(self.device)

    def host_timed(self, region, per=1):
        """A case that times `region` on the host. What the region returns is dropped outside the timed part."""

        def case():
            start = time.perf_counter()
            made = region()
            seconds = time.perf_counter() - start
            del made
            return seconds / per

        return case

    def read_timed(self, make, read, synchronize):
        """A case that times `read` on the host. The work of `make` is pending, or complete with `synchronize`."""

        def case():
            made = make()
            if synchronize:
                self.synchronize()
            start = time.perf_counter()
            value = read(made)
            seconds = time.perf_counter() - start
            del value
            return seconds

        return case

    def device_timed(self, region, per=1):
        """A case that times `region` with two events on the current stream."""
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
        """Samples the cases of `make`, by identifier. If one case fails, all rows of the group are marked as failed."""
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
                self.add_row(name, parameters, {"failed": {"reason": reason}})
            return
        for name, values in samples.items():
            clock = (clocks or {}).get(name, "host-clock")
            self.add_row(name, parameters, {"measured": {"instrument": clock, "samples": values, "stopped_by": stopped_by}})

    def sample(self, cases):
        samples = {name: [] for name in cases}
        for number in range(WARMUP + self.plan["samples"]):
            if number == WARMUP:
                began = time.perf_counter()
            elif number >= WARMUP + MINIMUM and time.perf_counter() - began > self.plan["seconds"]:
                return samples, "time-limit"
            names = list(cases)
            self.order.shuffle(names)
            for name in names:
                self.synchronize()
                value = cases[name]()
                if number >= WARMUP:
                    samples[name].append(value)
        return samples, "samples"

    def add_row(self, name, parameters, outcome, unit="seconds"):
        self.rows.append({"id": name, "parameters": dict(parameters), "unit": unit, "outcome": outcome})

    def rate(self, name, of, parameters, amount):
        """Adds the row `name`: `amount` divided by the samples of the row `of`."""
        row = next((row for row in self.rows if row["id"] == of and row["parameters"] == parameters), None)
        if row and "measured" in row["outcome"]:
            samples = [amount / sample for sample in row["outcome"]["measured"]["samples"]]
            derived = {"derivation": "computation", "formula": "bytes / done", "samples": samples}
            self.add_row(name, parameters, {"derived": derived}, "bytes-per-second")


def fingerprint(uuid):
    """Distinguishes the GPUs of one machine without a serial number: FNV-1a, 32 bits, of the UUID as text."""
    code = 0x811C9DC5
    for byte in uuid.lower().removeprefix("gpu-").encode():
        code = (code ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{code:08x}"


def driver_version():
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        output = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return None
    return output[0] if output else None


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), None)
    except OSError:
        return None


def main():
    parser = argparse.ArgumentParser(description="Times the work of the book's rows in PyTorch.")
    parser.add_argument("--quick", action="store_true", help="use the parameters and the sampling of the suite `quick`")
    parser.add_argument("--device", default="cuda:0", help="the GPU, by its PyTorch name")
    parser.add_argument("--out", metavar="FILE", help="where to write the JSON; without it, the JSON is printed")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        sys.exit(f"PyTorch is not installed in this environment: {error}")
    if not torch.cuda.is_available():
        sys.exit(f"PyTorch {torch.__version__} finds no CUDA GPU here, and the rows need one: nothing was measured")
    device = torch.device(arguments.device)
    if device.type != "cuda" or (device.index or 0) >= torch.cuda.device_count():
        sys.exit(f"there is no GPU `{arguments.device}`: PyTorch finds cuda:0 to cuda:{torch.cuda.device_count() - 1}")
    device = torch.device("cuda", device.index or 0)
    torch.cuda.set_device(device)
    # Full fp32 precision in matmuls, as the rows are defined.
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
    system = {
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
    text = json.dumps(system, indent=1, allow_nan=False)
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
