#!/usr/bin/env python3
"""On a GPU: an older `report` and today's, in turn, in one command.

    pairs.py OLDER TODAY FOLDER SECONDS

Each round runs both once, the first of them in turn. The ratio of a row in a round is that of the medians of its two runs, and
its interval is a t interval over the rounds' logarithms. The rows whose whole interval lies above 1 are printed, with the
ratio's middle over all rows.
"""

import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

EXPERIMENTS = [word for name in ("self-audit", "launch-path", "synchronize") for word in ("--only", name)]
# Of Student's t at 97.5 %, for 1 degree of freedom and more.
T = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09]


def medians(program, file):
    """The median of each measured row in seconds, of one run."""
    file.unlink(missing_ok=True)
    command = [program, "run", "--suite", "full", *EXPERIMENTS, "--runs", "1", "--quiet", "--out", file]
    if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode != 0:
        sys.exit(f"{program} did not measure")
    found = {}
    for row in json.loads(file.read_text())["rows"]:
        for series in row["series"]:
            measured = series["outcome"].get("measured") if isinstance(series["outcome"], dict) else None
            if measured and row["spec"]["unit"] == "seconds":
                found[row["spec"]["id"]] = statistics.median(measured["samples"])
    return found


def interval(ratios):
    """The ratio's estimate and the ends of its 95 % interval."""
    logs = [math.log(ratio) for ratio in ratios]
    half = T[min(len(logs) - 2, len(T) - 1)] * statistics.stdev(logs) / math.sqrt(len(logs))
    middle = statistics.mean(logs)
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def main():
    older, today, folder, seconds = sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4])
    folder.mkdir(parents=True, exist_ok=True)
    ratios, rounds, end = {}, 0, time.monotonic() + seconds
    longest = 0.0
    while time.monotonic() + longest < end:
        begun = time.monotonic()
        order = [("older", older), ("today", today)]
        if rounds % 2:
            order.reverse()
        found = {name: medians(program, folder / f"{name}-{rounds}.json") for name, program in order}
        for row in found["older"].keys() & found["today"].keys():
            if found["older"][row] > 0 and found["today"][row] > 0:
                ratios.setdefault(row, []).append(found["today"][row] / found["older"][row])
        rounds += 1
        longest = max(longest, time.monotonic() - begun)
    if rounds < 2:
        sys.exit("there was time for fewer than two rounds")
    # Of what both programs measure in each round.
    whole = {row: interval(values) for row, values in ratios.items() if len(values) == rounds}
    above = sorted(row for row, (_, low, _) in whole.items() if low > 1)
    for row in above:
        print("{}: {:.3f} [{:.3f}, {:.3f}]".format(row, *whole[row]))
    print(f"{rounds} rounds, {len(whole)} rows, in the middle {statistics.median(r for r, _, _ in whole.values()):.3f}, "
          f"{len(above)} lie above 1")


main()
