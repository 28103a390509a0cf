#!/usr/bin/env python3
"""Which verdicts do the comparisons of other benchmarks give of the same samples, and how often are they wrong?

    verdicts.py REPORT CRITERION RESULTS.json…

REPORT is this repository's `report`, CRITERION the program of the folder `criterion` beside this script. Each file of results holds
a set of runs, as `report run` writes it, all of the same code on one machine. It needs numpy, tabulate, colorama and the
scripts of nvbench: `pip install cuda-bench==0.3.0 numpy tabulate colorama jsondiff`.

nvbench's two scripts, criterion and tango's rule get the first run of each side. `report compare` takes all runs of each side. All
have their default settings, but criterion a tenth of its resamples. So their thresholds differ: 5 % for `report compare`, 1 % for
criterion, 0.5 % for tango's rule, and for nvbench the scatter of the samples. The rule of tango is written anew, from its
documentation: pairs of samples, of which the mean difference is 2.6 standard errors from 0 or more, and more than 0.5 %. In tango
the samples of a pair are neighbours in time, which these are not.

Of each kind of data there are equal sides, and sides of which every tenth row takes 20 % longer in the second. A false alarm is
a row named slower or faster that is neither.
"""

import gzip
import itertools
import json
import math
import os
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROWS, SAMPLES, RUNS, TRIALS = 20, 50, 5, 20
# Of measured rows, each twentieth.
FEWER = 20
CHANGE, EACH = 1.2, 10
CLOCK = 1.755e9
TAG = "nv/cold/time/gpu/"


# Data. A side is a list of runs, a run a list of rows, a row a list of samples in seconds.


def simulated(rng, level):
    """A side whose runs have a level of their own in each row; within a run samples scatter by 2 %."""
    return [[[1e-5 * math.exp(own + rng.gauss(0, 0.02)) for _ in range(SAMPLES)]
             for own in level(rng)] for _ in range(RUNS)]


def normal(rng):
    return [rng.gauss(0, 0.01) for _ in range(ROWS)]


def two_modes(rng):
    return [rng.gauss(0, 0.01) + rng.choice([0.0, math.log(1.6)]) for _ in range(ROWS)]


def bad_run(rng):
    bad = math.log(2) if rng.random() < 0.2 else 0.0
    return [rng.gauss(0, 0.01) + bad for _ in range(ROWS)]


def measured(paths):
    """The runs of results files: of the rows that all have as measured times, the samples of each run."""
    runs = []
    for path in paths:
        content = json.loads(gzip.open(path).read() if path.name.endswith(".gz") else path.read_text())
        for run in content["runs"]:
            found = {}
            for row in content["rows"]:
                spec = row["spec"]
                for series in row["series"]:
                    outcome = series["outcome"].get("measured") if isinstance(series["outcome"], dict) else None
                    if outcome and series["run"] == run["id"] and spec["unit"] == "seconds" and "measured" in spec["provenance"]:
                        if min(outcome["samples"]) > 0:
                            found[json.dumps([spec["id"], spec.get("parameters")])] = outcome["samples"]
            runs.append(found)
    rows = sorted(set.intersection(*(set(run) for run in runs)))[::FEWER]
    return [[run[row] for row in rows] for run in runs]


def changed(side):
    return [[[sample * (CHANGE if place % EACH == 0 else 1.0) for sample in row] for place, row in enumerate(run)] for run in side]


# What the tools read.


def nvbench_file(path, run, name):
    """A run as nvbench writes it by `--jsonbin`."""
    bins = Path(f"{path}-bin")
    bins.mkdir()
    states = []
    for place, row in enumerate(run):
        (bins / f"{place}.bin").write_bytes(struct.pack(f"<{len(row)}f", *row))
        (bins / f"{place}.freqs").write_bytes(struct.pack(f"<{len(row)}f", *[CLOCK] * len(row)))
        # What nvbench sums up is what it keeps.
        row = sorted(row)
        mean, deviation = statistics.mean(row), statistics.stdev(row)
        quarters = statistics.quantiles(row, n=4, method="inclusive")
        value = {"min": row[0], "max": row[-1], "mean": mean, "stdev/absolute": deviation, "stdev/relative": deviation / mean,
                 "q1": quarters[0], "median": quarters[1], "q3": quarters[2], "iqr/absolute": quarters[2] - quarters[0],
                 "iqr/relative": (quarters[2] - quarters[0]) / quarters[1]}
        summaries = [{"tag": TAG + tag, "name": tag, "data": [{"name": "value", "type": "float64", "value": repr(number)}]}
                     for tag, number in value.items()]
        # The clock of a GPU that keeps its rate: the robust script confirms a change by it.
        summaries.append({"tag": "nv/cold/sm_clock_rate/mean", "name": "Clock", "data": [
            {"name": "value", "type": "float64", "value": repr(CLOCK)}]})
        for tag, ending in (("nv/json/bin:nv/cold/sample_times", "bin"), ("nv/json/freqs-bin:nv/cold/sample_freqs", "freqs")):
            summaries.append({"tag": tag, "name": ending, "data": [
                {"name": "filename", "type": "string", "value": f"{path.name}-bin/{place}.{ending}"},
                {"name": "size", "type": "int64", "value": str(len(row))}]})
        states.append({"name": f"Device=0 Row={place}", "device": 0, "type_config_index": 0, "is_skipped": False, "summaries": summaries,
                       "axis_values": [{"name": "Row", "type": "int64", "value": str(place)}]})
    axis = {"name": "Row", "type": "int64", "flags": "", "values": [
        {"input_string": str(place), "description": "", "value": place} for place in range(len(run))]}
    content = {"meta": {"argv": [], "version": {"json": {"string": "1.0.0"}, "nvbench": {"string": "0.3.0"}}},
               "devices": [{"id": 0, "name": "GPU"}],
               "benchmarks": [{"name": name, "index": 0, "devices": [0], "axes": [axis], "states": states}]}
    path.write_text(json.dumps(content))


# The tools: of each pair of sides, one verdict a row: slower, faster, same or undecided.


def nvbench(script, pairs, folder):
    import cuda.bench
    sides = [folder / "a", folder / "b"]
    for side, place in zip(sides, (0, 1)):
        side.mkdir()
        for number, pair in enumerate(pairs):
            nvbench_file(side / f"{number}.json", pair[place][0], f"pair-{number}")
    program = Path(cuda.bench.__file__).parent / "scripts" / script
    said = subprocess.run([sys.executable, program, "--no-color", *sides], capture_output=True, text=True, check=False).stdout
    words = {"SLOW": "slower", "FAST": "faster", "SAME": "same", "AMBG": "undecided", "????": "undecided"}
    verdicts, current = {}, None
    for line in said.splitlines():
        if title := re.match(r"# pair-(\d+)", line):
            current = int(title[1])
        elif row := re.match(r"\|\s*(\d+)\s*\|.*(SLOW|FAST|SAME|AMBG|\?\?\?\?)\s*\|$", line):
            verdicts[current, int(row[1])] = words[row[2]]
    return [[verdicts[number, place] for place in range(len(pair[0][0]))] for number, pair in enumerate(pairs)]


def criterion(program, pairs, folder):
    names = [f"{number}-{place}" for number, pair in enumerate(pairs) for place in range(len(pair[0][0]))]
    for name, (number, place) in zip(names, ((number, place) for number, pair in enumerate(pairs) for place in range(len(pair[0][0])))):
        for baseline, side in zip(("a", "b"), pairs[number]):
            own = folder / name / baseline
            own.mkdir(parents=True)
            samples = side[0][place]
            (own / "sample.json").write_text(json.dumps(
                {"sampling_mode": "Flat", "iters": [1.0] * len(samples), "times": [1e9 * sample for sample in samples]}))
            (own / "benchmark.json").write_text(json.dumps(
                {"group_id": name, "function_id": None, "value_str": None, "throughput": None, "full_id": name,
                 "directory_name": name, "title": name}))
            estimate = {"confidence_interval": {"confidence_level": 0.95, "lower_bound": 0.0, "upper_bound": 0.0},
                        "point_estimate": 0.0, "standard_error": 0.0}
            (own / "estimates.json").write_text(json.dumps(
                {key: estimate for key in ("mean", "median", "median_abs_dev", "std_dev")} | {"slope": None}))
    said = subprocess.run([program, "--bench", "--load-baseline", "b", "--baseline", "a"], input="\n".join(names), text=True,
                          capture_output=True, env={**os.environ, "CRITERION_HOME": str(folder)}, check=True).stdout
    words = {"Performance has regressed": "slower", "Performance has improved": "faster", "Change within noise threshold": "same",
             "No change in performance detected": "undecided"}
    told = [words[found[0]] for found in re.finditer("|".join(words), said)]
    if len(told) != len(names):
        sys.exit(f"criterion said {len(told)} verdicts of {len(names)}:\n{said[:2000]}")
    told = iter(told)
    return [list(itertools.islice(told, len(pair[0][0]))) for pair in pairs]


def tango(pairs):
    def verdict(base, candidate):
        differences = [b - a for a, b in zip(base, candidate)]
        mean, deviation = statistics.mean(differences), statistics.stdev(differences)
        error = deviation / math.sqrt(len(differences))
        if abs(mean) < 2.6 * error or abs(mean) <= 0.005 * statistics.mean(base):
            return "undecided"
        return "slower" if mean > 0 else "faster"
    return [[verdict(*rows) for rows in zip(a[0], b[0])] for a, b in pairs]


def own(report, pairs, folder):
    found = []
    for number, pair in enumerate(pairs):
        files = []
        for name, side in zip("ab", pair):
            runs = [folder / f"{number}-{name}-{place}.json" for place in range(len(side))]
            for path, run in zip(runs, side):
                nvbench_file(path, run, "rows")
            files.append(folder / f"{number}-{name}.json")
            subprocess.run([report, "import", *runs, "--out", files[-1]], check=True, capture_output=True)
        said = subprocess.run([report, "compare", "--json", *files], check=True, capture_output=True, text=True).stdout
        verdicts = {pair["parameters"]["Row"]: pair["shift"] for pair in json.loads(said)["pairs"]}
        found.append([verdicts[place].replace("uncertain", "undecided") for place in range(len(pair[0][0]))])
    return found


def judged(equal, changed):
    """The cells of a line: of equal sides those with an alarm and the rows with one; of changed ones the rows found; undecided rows."""
    alarms = [sum(verdict in ("slower", "faster") for verdict in pair) for pair in equal]
    of_changed = Counter(verdict for pair in changed for place, verdict in enumerate(pair) if place % EACH == 0)
    rows, undecided = sum(map(len, equal)), sum(pair.count("undecided") for pair in equal)
    shares = [sum(map(bool, alarms)) / len(equal), sum(alarms) / rows, of_changed["slower"] / sum(of_changed.values()), undecided / rows]
    return [f"{100 * share:.1f} %" for share in shares]


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    report, criterion_program, paths = sys.argv[1], sys.argv[2], [Path(path) for path in sys.argv[3:]]
    data = {}
    for name, level in [("simulated: 1 % between runs", normal), ("simulated: two modes by run, 60 % apart", two_modes),
                        ("simulated: one run in five takes twice as long", bad_run)]:
        rng = random.Random(48)
        data[f"{name}; {TRIALS} pairs of {RUNS} runs"] = [(simulated(rng, level), simulated(rng, level)) for _ in range(TRIALS)]
    runs, each = measured(paths), len(measured(paths[:1]))
    sets = [runs[begin:begin + each] for begin in range(0, len(runs), each)]
    # Two files each, of other times: what a machine does meanwhile is in both sides.
    half = len(sets) // 2
    doubled = [sets[place] + sets[place + half] for place in range(half)]
    for of in (sets, doubled):
        pairs = list(itertools.combinations(of, 2))
        data[f"measured; {len(pairs)} pairs of {len(of[0])} runs"] = pairs
    print("| the sides | comparison | equal sides with a false alarm | equal rows with one | rows 20 % slower that are found | "
          "equal rows undecided |\n|---|---|---|---|---|---|")
    for name, equal in data.items():
        with_change = [(a, changed(b)) for a, b in equal]
        tools = {
            "nvbench's `compare`": lambda pairs, folder: nvbench("nvbench_compare.py", pairs, folder),
            "nvbench's robust `compare`": lambda pairs, folder: nvbench("nvbench_compare_robust.py", pairs, folder),
            "criterion": lambda pairs, folder: criterion(criterion_program, pairs, folder),
            "tango's rule": lambda pairs, _: tango(pairs),
            "`report compare`": lambda pairs, folder: own(report, pairs, folder),
        }
        for tool, verdicts in tools.items():
            found = []
            for pairs in (equal, with_change):
                with tempfile.TemporaryDirectory() as folder:
                    found.append(verdicts(pairs, Path(folder)))
            print(f"| {name} | {tool} | {' | '.join(judged(*found))} |", flush=True)


if __name__ == "__main__":
    main()
