#!/usr/bin/env python3
"""Which arrangement of a process decides the mode that its times fall into?

    modes.py REPORT FOLDER SECONDS [DEVICE [ARRANGEMENT...]]

Starts processes of a few short rows under each arrangement, in blocks whose order is drawn, until the seconds are over. What
each process came to is kept in FOLDER/modes.jsonl, and a further call adds to it. Then the shares of slow processes and the
medians are printed by arrangement, with intervals of 95 %. A process is slow in a row where its median is more than 1.25 times
what the fastest tenth of all processes took; where a slow process has hardly a fast sample, it was slow all its life.

It needs Python, Linux and the program `report`, and leaves all settings of the machine as they are.
"""

import ctypes
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "audit/gpu"))
from order_statistics import of_median

ROWS = ["self-audit.event.cost", "self-audit.timer.cost", "self-audit.enqueue.raw", "synchronize.timing.without"]
SUITE = """title: Modes of a process
runs: 1
sampling: { warmup: 3, samples: 15, time_limit: 0.02 }
experiments: [self-audit: {}, synchronize: { iters: 200 }]
"""
# Processes of a block: what starts them is paid once.
BLOCK = 5
SLOW = 1.25
LIBC = ctypes.CDLL(None, use_errno=True)


def cpus(text):
    """The processors of a list such as `0-3,8`."""
    ends = [part.split("-") for part in text.strip().split(",") if part]
    return {cpu for part in ends for cpu in range(int(part[0]), int(part[-1]) + 1)}


def read(path, otherwise=""):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return otherwise


class Machine:
    """Its processors: which of them share a core, and which a memory node."""

    def __init__(self):
        self.own = sorted(os.sched_getaffinity(0))
        sibling = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
        self.siblings = {cpu: sorted(cpus(read(sibling.format(cpu), str(cpu))) & set(self.own)) for cpu in self.own}
        nodes = [(int(path.name[4:]), cpus(read(path / "cpulist"))) for path in Path("/sys/devices/system/node").glob("node[0-9]*")]
        self.nodes = {node: sorted(own & set(self.own)) for node, own in sorted(nodes) if own & set(self.own)}

    def clock(self):
        folder = "/sys/devices/system/clocksource/clocksource0/"
        return f"{read(folder + 'current_clocksource', 'unknown')} of {read(folder + 'available_clocksource', 'unknown')}"

    def pages(self):
        return read("/sys/kernel/mm/transparent_hugepage/enabled", "unknown")


def checked(name, result):
    if result < 0:
        raise OSError(ctypes.get_errno(), name)


def without_random_addresses():
    checked("personality", LIBC.personality(0x0040000))


def without_huge_pages():
    checked("prctl", LIBC.prctl(41, 1, 0, 0, 0))


def memory_of(mode, nodes):
    """Where a page lies that is touched first: set_mempolicy, of the 64-bit Linux on x86 or ARM."""
    mask = ctypes.c_ulong(sum(1 << node for node in nodes))
    number = 238 if os.uname().machine == "x86_64" else 237
    return lambda: checked("set_mempolicy", LIBC.syscall(number, mode, ctypes.byref(mask), 64))


def on(chosen):
    return lambda: os.sched_setaffinity(0, chosen)


def arrangements(machine):
    """By name: what a block is started with, as its environment, what its process does first, and a word on it."""
    one = random.choice(machine.own)
    pair = next((own for own in machine.siblings.values() if len(own) > 1), None)
    apart = [cpu for cpu in machine.own if cpu not in machine.siblings[one]]
    found = {
        "as it comes": ({}, [], ""),
        "addresses not random": ({}, [without_random_addresses], ""),
        "environment of random length": ({"PADDING": "x" * random.randrange(4096)}, [], ""),
        "addresses not random, environment of random length": (
            {"PADDING": "x" * random.randrange(4096)}, [without_random_addresses], ""),
        "no huge pages": ({}, [without_huge_pages], ""),
        "huge pages for malloc": ({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}, [], ""),
        "one arena of malloc": ({"GLIBC_TUNABLES": "glibc.malloc.arena_max=1"}, [], ""),
        "one processor": ({}, [on({one})], str(one)),
    }
    if pair:
        pair = machine.siblings[one] if len(machine.siblings[one]) > 1 else pair
        found["two threads of one core"] = ({}, [on(set(pair))], ",".join(map(str, pair)))
    if apart:
        two = {one, random.choice(apart)}
        found["two cores"] = ({}, [on(two)], ",".join(map(str, sorted(two))))
    if len(machine.nodes) > 1:
        node, other = random.sample(sorted(machine.nodes), 2)
        found["one memory node"] = ({}, [on(set(machine.nodes[node])), memory_of(1, [node])], str(node))
        found["memory of the other node"] = ({}, [on(set(machine.nodes[node])), memory_of(1, [other])], f"{node}, memory {other}")
        found["pages on all nodes in turn"] = ({}, [memory_of(3, list(machine.nodes))], "")
    return found


def block(report, device, environment, first):
    """What each of the processes of a block came to: of each row its samples."""
    with tempfile.TemporaryDirectory() as folder:
        suite, out = Path(folder) / "suite.yaml", Path(folder) / "results.json"
        suite.write_text(SUITE)
        only = [word for row in ROWS for word in ("--only", row)]
        command = [report, "run", "--suite", suite, *only, "--runs", str(BLOCK), "--quiet", "--out", out]
        begin = lambda: [step() for step in first]
        ended = subprocess.run([*command, *(["--device", device] if device else [])], env={**os.environ, **environment},
                               preexec_fn=begin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if not out.exists():
            raise OSError(f"it left no results: {ended.stderr.strip()[-200:]}")
        processes = defaultdict(dict)
        for row in json.loads(out.read_text())["rows"]:
            for series in row["series"]:
                measured = series["outcome"].get("measured") if isinstance(series["outcome"], dict) else None
                if measured and row["spec"]["id"] in ROWS:
                    processes[series["run"]][row["spec"]["id"]] = measured["samples"]
        return list(processes.values())


def wilson(count, of):
    """The interval of a share (E. B. Wilson, 1927)."""
    z, share = 1.96, count / of
    middle, half = share + z * z / (2 * of), z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return [max(0.0, (middle - half) / (1 + z * z / of)), min(1.0, (middle + half) / (1 + z * z / of))]


def time_of(seconds):
    factor, unit = next(pair for pair in [(1e9, "ns"), (1e6, "µs"), (1e3, "ms"), (1.0, "s")] if seconds * pair[0] < 1000 or pair[1] == "s")
    return f"{seconds * factor:.4g} {unit}"


def said(found, machine):
    """The tables of what was kept."""
    lines = [f"{len(machine.own)} processors; memory nodes: {len(machine.nodes)}; clock source: {machine.clock()}; "
             f"huge pages: {machine.pages()}"]
    for row in ROWS:
        own = [(process["arrangement"], process["at"], process["rows"][row]) for process in found if row in process["rows"]]
        if not own:
            lines.append(f"\n{row}: not measured here")
            continue
        medians = sorted(statistics.median(samples) for _, _, samples in own)
        limit = SLOW * medians[len(medians) // 10]
        lines += [f"\n{row}: slow beyond {time_of(limit)}", "",
                  "| arrangement | processes | slow | interval | median | interval | fast samples of slow processes |",
                  "|---|---|---|---|---|---|---|"]
        by = defaultdict(list)
        for arrangement, _, samples in own:
            by[arrangement].append(samples)
        for arrangement, processes in by.items():
            of_each = [statistics.median(samples) for samples in processes]
            slow = [samples for samples, middle in zip(processes, of_each) if middle > limit]
            fast = [sum(sample <= limit for sample in samples) / len(samples) for samples in slow]
            low, high = wilson(len(slow), len(processes))
            middle, least, most = map(time_of, of_median(of_each))
            lines.append(f"| {arrangement} | {len(processes)} | {len(slow) / len(processes):.0%} | {low:.0%} … {high:.0%} | {middle} | "
                         f"{least} … {most} | {f'{statistics.mean(fast):.0%}' if fast else '–'} |")
        places = defaultdict(list)
        for _, at, samples in own:
            if at:
                places[at].append(statistics.median(samples) > limit)
        told = [f"{at}: {sum(slow)} of {len(slow)}" for at, slow in sorted(places.items(), key=lambda item: -sum(item[1]) / len(item[1]))]
        lines.append(f"\nslow by processors: {'; '.join(told)}")
    return "\n".join(lines)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    report, folder, seconds = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    device, chosen = (sys.argv[4] if len(sys.argv) > 4 else ""), sys.argv[5:]
    folder.mkdir(parents=True, exist_ok=True)
    kept, machine, longest = folder / "modes.jsonl", Machine(), 0.0
    end, order, failed = time.monotonic() + seconds, [], set()
    while time.monotonic() + longest < end:
        now = arrangements(machine)
        if unknown := set(chosen) - set(now):
            sys.exit(f"no arrangement here: {', '.join(sorted(unknown))}; there are {', '.join(now)}")
        order = order or random.sample(chosen or list(now), len(chosen or now))
        name = order.pop()
        environment, first, at = now[name]
        begun = time.monotonic()
        try:
            processes = block(report, device, environment, first)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            # Where nothing can be measured, nothing is gone on with.
            failed.add(name)
            if len(failed) == len(chosen or now):
                sys.exit("no arrangement could be measured")
            continue
        longest = max(longest, time.monotonic() - begun)
        with kept.open("a") as file:
            for rows in processes:
                file.write(json.dumps({"arrangement": name, "at": at, "rows": rows}) + "\n")
    print(said([json.loads(line) for line in kept.read_text().splitlines()], machine))


if __name__ == "__main__":
    main()
