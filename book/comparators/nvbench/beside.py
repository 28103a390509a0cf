#!/usr/bin/env python3
"""Does NVIDIA's nvbench find the same times of the same kernels? A table, of programs that run in turn on this machine's GPU.

    beside.py REPORT FOLDER

REPORT is this repository's `report`. FOLDER is one for the files of both. It needs nvcc and `pip install cuda-bench==0.3.0`, whose
headers and library `kernels.cu` beside this script is built with. Each figure is the median of the rounds. In batches, nvbench holds
the first two launches back, and the gate all of them; nvbench's time is a mean. Of single launches with cold caches, both are medians.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path

from cuda.bench import get_nvbench_include_dir, get_nvbench_library_dir

ROUNDS = 3
NVBENCH = {"nv/batch/time/gpu/mean": "batch", "nv/cold/time/gpu/median": "cold"}
OURS = {"self-audit.kernel.gate": "batch", "self-audit.kernel.cold": "cold"}
COLUMNS = [(tool, row) for row in ("batch", "cold") for tool in ("nvbench", "syncscope")]


def built(folder):
    program, libraries = folder / "kernels", get_nvbench_library_dir()
    source = Path(__file__).resolve().parent / "kernels.cu"
    # The driver's libraries lie elsewhere on many machines.
    link = [f"-L{libraries}", "-lnvbench", f"-Xlinker=-rpath={libraries}", "-Xlinker=--unresolved-symbols=ignore-in-shared-libs"]
    subprocess.run(["nvcc", "-O3", "-std=c++17", "-arch=native", f"-I{get_nvbench_include_dir()}", "-o", program, source, *link], check=True)
    return program


def by_nvbench(program, file):
    limits = ["--timeout", "1", "--min-time", "0.02"]
    subprocess.run([program, "--devices", "0", "--quiet", *limits, "--json", file], check=True, stdout=subprocess.DEVNULL)
    for benchmark in json.loads(file.read_text())["benchmarks"]:
        for state in benchmark["states"]:
            kernel = f"{benchmark['name']} {state['axis_values'][0]['value']}"
            for summary in state["summaries"]:
                if summary["tag"] in NVBENCH:
                    yield kernel, ("nvbench", NVBENCH[summary["tag"]]), float(summary["data"][0]["value"])


def by_syncscope(report, file):
    subprocess.run([report, "run", "--suite", "full", "--only", "self-audit.kernel", "--runs", "1", "--quiet", "--out", file], check=True)
    for row in json.loads(file.read_text())["rows"]:
        name = OURS.get(row["spec"]["id"])
        for series in row["series"] if name else []:
            samples = series["outcome"]["measured"]["samples"]
            yield row["spec"]["parameters"]["kernel"], ("syncscope", name), statistics.median(samples)


def main():
    report, folder = (Path(argument).resolve() for argument in sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    program = built(folder)
    found = {}
    for number in range(ROUNDS):
        for kernel, column, seconds in [*by_nvbench(program, folder / f"nvbench-{number}.json"),
                                        *by_syncscope(report, folder / f"syncscope-{number}.json")]:
            found.setdefault(kernel, {}).setdefault(column, []).append(seconds)
    print(f"{'µs':18}{'in batches':>26}  {'one launch, cold caches':>26}")
    print(f"{'kernel':18}" + "".join(f"{tool:>13}" + "  " * place for place, (tool, _) in zip((0, 1, 0, 0), COLUMNS)))
    for kernel, columns in found.items():
        values = [f"{statistics.median(columns[column]) * 1e6:13.2f}" for column in COLUMNS]
        print(f"{kernel:18}{''.join(values[:2])}  {''.join(values[2:])}")


if __name__ == "__main__":
    main()
