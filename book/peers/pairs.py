#!/usr/bin/env python3
"""Compares an old and a new `report`, which run in turn, row by row. Needs no PyTorch.

    python3 book/peers/pairs.py OLD/report target/release/report --suite full --rounds 12 --out pairs.json

In each round both programs run the suite, with the sizes that its documents state, one after the other in an order that
alternates. The ratio of a round is the new median of a row's samples over the old one. Its interval goes from one of the
ratios to another, by their order, and holds their median in at least 95 % of such samples, whatever the distribution: that
takes six rounds. A row is as fast as before where the interval holds 1 or lies below; of rows that did not change, one in
forty is above by chance. Compared are times that were measured, under the same parameters: smaller is better.

Prints a table as Markdown. Exit code: 0, or 1 where a row is slower, is missing or failed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import sweep

FEWEST_ROUNDS = 6


def times_of(file):
    """The median of each row that is a time and was measured, by its identifier and parameters."""
    with open(file, encoding="utf-8") as opened:
        rows = json.load(opened)["rows"]
    times = {}
    for row in rows:
        spec = row["spec"]
        if spec.get("unit") != "seconds" or "measured" not in spec.get("provenance", {}):
            continue
        key = (spec["id"], json.dumps(spec.get("parameters", {}), sort_keys=True))
        samples = [s for series in row["series"] for s in series["outcome"].get("measured", {}).get("samples", [])]
        if samples:
            times[key] = statistics.median(samples)
    return times


def run(program, options, folder, name):
    """One run of a program: its rows."""
    out = os.path.join(folder, f"{name}.json")
    done = subprocess.run([program, "run", *options, "--runs", "1", "--out", out], capture_output=True, text=True, check=False)
    # 1 means that a row failed; the others are there.
    if done.returncode not in (0, 1) or not os.path.exists(out):
        raise SystemExit(f"{program} run ended with {done.returncode}:\n{done.stderr.strip()}")
    return times_of(out)


def compare(old, new, options, rounds):
    """The times of both, by round."""
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            order = (("old", old), ("new", new))
            both = {name: run(program, options, folder, f"{number}-{name}")
                    for name, program in (order if number % 2 == 0 else reversed(order))}
            pairs.append((both["old"], both["new"]))
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return pairs


def rows_of(pairs):
    """A result for each row of either program."""
    rows = []
    for key in sorted({key for pair in pairs for side in pair for key in side}):
        both = [(old[key], new[key]) for old, new in pairs if key in old and key in new]
        row = {"row": key[0], "parameters": json.loads(key[1]), "pairs": both}
        if len(both) < FEWEST_ROUNDS or any(old <= 0 for old, _ in both):
            rows.append({**row, "verdict": f"not compared: {len(both)} of {len(pairs)} rounds have it in both"})
            continue
        ratios = [new / old for old, new in both]
        low, high = sweep.interval(ratios)
        rows.append({**row, "old": statistics.median(old for old, _ in both), "new": statistics.median(new for _, new in both),
                     "ratio": statistics.median(ratios), "low": low, "high": high,
                     "verdict": "slower" if low > 1 else "faster" if high < 1 else "as before"})
    return rows


def markdown(rows):
    """The table of all rows."""
    lines = ["| row | old, µs | new, µs | new / old | 95 % interval | |", "|---|---:|---:|---:|---|---|"]
    for row in rows:
        if "ratio" not in row:
            lines.append(f"| {row['row']} | | | | | {row['verdict']} |")
            continue
        lines.append(f"| {row['row']} | {row['old'] * 1e6:.2f} | {row['new'] * 1e6:.2f} | {row['ratio']:.3f} "
                     f"| {row['low']:.3f} to {row['high']:.3f} | {row['verdict']} |")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Compares an old and a new `report`, which run in turn.")
    parser.add_argument("old", help="the program of before")
    parser.add_argument("new", help="the program of now")
    parser.add_argument("--suite", default="full", help="what both run")
    parser.add_argument("--device", help="the device, instead of the suite's")
    parser.add_argument("--only", action="append", default=[], metavar="ROWS", help="these rows alone; may be given again")
    parser.add_argument("--rounds", type=int, default=12, help=f"{FEWEST_ROUNDS} at least")
    parser.add_argument("--out", metavar="FILE", help="where to write all pairs, as JSON; the table goes beside it, as .md")
    given = parser.parse_args(arguments)
    if given.rounds < FEWEST_ROUNDS:
        parser.error(f"an interval of 95 % takes {FEWEST_ROUNDS} rounds")
    options = ["--suite", given.suite, *(["--device", given.device] if given.device else [])]
    options += [part for rows in given.only for part in ("--only", rows)]
    rows = rows_of(compare(given.old, given.new, options, given.rounds))
    table = markdown(rows)
    if given.out:
        sweep.keep(given.out, {"old": given.old, "new": given.new, "options": options, "rounds": given.rounds, "rows": rows}, table)
    wrong = [row for row in rows if row["verdict"] not in ("as before", "faster")]
    print(f"{table}\n\n{len(rows) - len(wrong)} of {len(rows)} rows are as fast as before, or faster")
    return 1 if wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
