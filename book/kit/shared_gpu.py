#!/usr/bin/env python3
"""What N processes at once on one device do to the values that each of them measures.

    python3 book/kit/shared_gpu.py REPORT FOLDER [--device cuda:0]

REPORT is the program `report`. 1, 2, 4 and 8 processes run the same rows of its quick suite at once, in rounds of
1, 2, 4, 8, 8, 4, 2, 1, so that a slow drift of the machine does not look like an effect of the number. A round of one
process goes before them and is not counted: it fills the caches of compiled kernels. Their results files go to
FOLDER, with `shared-gpu.csv`: for each row and number of processes the median over the processes' medians, the least
and the greatest of these, and the ratio to one process.

Each process has processors of its own, the same number in every round, where there are at least as many processors as
processes: they share the GPU and the link to it, not a processor. Else they share the processors as well, and the file
says so.

Limits: the processes start together, and each takes its rows in an order of its own. One that ends early leaves the
device to the others. Time slicing by the driver's default is measured, not MPS and not MIG.
"""

import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROUNDS = [1, 2, 4, 8, 8, 4, 2, 1]
# The rows, each with the parameters that tell the case from others of that row.
ROWS = {
    "self-audit.enqueue.in-place": {},
    "self-audit.synchronize.stream": {},
    "self-audit.synchronize.device": {},
    "async-frontend.model.t2": {},
    "async-frontend.complete": {},
    "async-frontend.barriers.item.ready": {},
    "async-frontend.barriers.item.pending": {},
    "async-frontend.barriers.copy.ready": {},
    "overlap.double-buffer.copies": {},
    "overlap.double-buffer.total": {},
    "launch-path.batched.complete": {"operations": 100},
    "launch-path.graph.complete": {"operations": 100},
    "synchronize.loop.each": {},
    "synchronize.loop.complete": {},
}
COLUMNS = ["row", "label", "unit", "processes", "median", "least", "greatest", "ratio"]
# The longest that one round may take, in seconds.
LONGEST = 120


def shares(count):
    """The processors of each of `count` processes; `None` where they have to share them."""
    processors = sorted(os.sched_getaffinity(0))
    each = len(processors) // max(ROUNDS)
    if each == 0:
        return [None] * count
    return [set(processors[at * each:][:each]) for at in range(count)]


def started(command, processors):
    def confine():
        if processors is not None:
            os.sched_setaffinity(0, processors)

    # With `--quiet` it writes less on standard error than a pipe holds.
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=confine)


def ended(process, file):
    """The results of a process that has ended."""
    message = process.stderr.read().decode(errors="replace").strip()
    if process.returncode != 0:
        raise RuntimeError(f"{file.name}: {message}")
    return json.loads(file.read_text(encoding="utf-8"))


def round_of(report, folder, device, count, name):
    """Runs `count` processes at once; their results, each with its time in seconds."""
    only = [part for row in ROWS for part in ("--only", row)]
    files = [folder / f"{name}-process{at + 1}.json" for at in range(count)]
    for file in files:
        file.unlink(missing_ok=True)
    common = [report, "run", "--suite", "quick", "--runs", "1", "--quiet", "--device", device, *only, "--out"]
    begin = time.monotonic()
    processes = [started([*common, str(file)], own) for file, own in zip(files, shares(count))]
    try:
        # Waits for all of them at once, so that each has its own time.
        took = [None] * count
        while None in took:
            for at, process in enumerate(processes):
                if took[at] is None and process.poll() is not None:
                    took[at] = time.monotonic() - begin
            if time.monotonic() - begin > LONGEST:
                raise RuntimeError(f"{name}: not at its end after {LONGEST} s")
            time.sleep(0.01)
        return [(ended(process, file), own) for process, file, own in zip(processes, files, took)]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
            process.stderr.close()


def medians(results):
    """The median of each key row of a results file, with its label and unit."""
    found = {}
    for row in results["rows"]:
        spec = row["spec"]
        wanted = ROWS.get(spec["id"])
        parameters = spec.get("parameters") or {}
        if wanted is None or any(parameters.get(name) != value for name, value in wanted.items()):
            continue
        for series in row["series"]:
            measured = series["outcome"].get("measured")
            if measured:
                found[spec["id"]] = (spec["label"], spec["unit"], statistics.median(measured["samples"]))
    return found


def reduced(rounds):
    """The lines of the table, of `(processes, [(results, seconds)])`."""
    values, names = {}, {}
    for count, processes in rounds:
        for results, seconds in processes:
            found = {**medians(results), "process": ("The whole process, from its start to its end", "seconds", seconds)}
            for row, (label, unit, value) in found.items():
                names[row] = (label, unit)
                values.setdefault(row, {}).setdefault(count, []).append(value)
    for row in [*ROWS, "process"]:
        for count, own in sorted(values.get(row, {}).items()):
            median = statistics.median(own)
            alone = statistics.median(values[row].get(1, [median]))
            line = [f"{value:.6g}" for value in (median, min(own), max(own), median / alone)]
            yield [row, *names[row], count, *line]


def facts(results, count_of_processors):
    """What the table says of the machine, from one of the files."""
    run = results["runs"][0]
    environment = run["environment"]
    host, device = environment["host"], environment["device"]
    known = dict(device["facts"])
    yield "device", device["model"]
    yield "driver", known.get("driver", "none")
    yield "host", f"{host['cpu']}, {os.cpu_count()} logical processors"
    yield "processors of each process", count_of_processors or "shared by all"
    yield "date", run["started"][:10]
    yield "wait policy", device.get("wait_policy") or "not known"
    yield "program", f"{environment['program']['name']} {environment['program']['version']}"
    yield "rounds", ", ".join(map(str, ROUNDS))


def write(file, rounds):
    _, first = rounds[0]
    own = shares(1)[0]
    with open(file, "w", encoding="utf-8", newline="") as out:
        for name, value in facts(first[0][0], own and len(own)):
            print(f"# {name}: {' '.join(str(value).split())}", file=out)
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(reduced(rounds))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("report", help="the program `report`")
    parser.add_argument("folder", type=pathlib.Path, help="the folder for the results files and the table")
    parser.add_argument("--device", default="cuda:0")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    round_of(arguments.report, arguments.folder, arguments.device, 1, "round0-not-counted")
    rounds = []
    for at, count in enumerate(ROUNDS):
        name = f"round{at + 1}-of{count}"
        rounds.append((count, round_of(arguments.report, arguments.folder, arguments.device, count, name)))
        print(f"{name}: done after {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    table = arguments.folder / "shared-gpu.csv"
    write(table, rounds)
    print(table)


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, OSError, json.JSONDecodeError) as error:
        sys.exit(f"error: {error}")
