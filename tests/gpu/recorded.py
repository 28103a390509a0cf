"""Holds what gates say of calls to what recordings say: `recorded.py REPORT SUITE RESULTS OUT PROGRAM...`. PROGRAM has measured RESULTS
by SUITE; here it makes each call once more, behind work of a known length, and records it by CUPTI. It prints each call of which
the two say different things, and for how many they say the same.
"""
import gzip
import json
import os
import subprocess
import sys


def key(spec):
    return spec["id"].rsplit(".", 1)[0], json.dumps(spec["parameters"], sort_keys=True)


def is_own(spec):
    """Whether a gate held the call's own stream."""
    return spec["id"].endswith(".blocks") and spec["parameters"].get("held", "same") == "same"


def samples_of(outcome):
    return outcome.get("measured", {}).get("samples", []) if isinstance(outcome, dict) else []


def by_gates(results):
    """The share of trials in which a call waited, by its system and row."""
    systems = {run["id"]: run["system"] for run in results["runs"]}
    found = {}
    for row in filter(lambda row: is_own(row["spec"]), results["rows"]):
        for series in row["series"]:
            if samples := samples_of(series["outcome"]):
                found.setdefault((systems[series["run"]], *key(row["spec"])), []).extend(samples)
    return {name: sum(values) / len(values) for name, values in found.items()}


def main(report, suite, results, out, *programs):
    plan = json.loads(subprocess.run([report, "plan", "--suite", suite], check=True, capture_output=True).stdout)
    rows = [row for row in plan["rows"] if is_own(row)]
    for row in rows:
        row["id"] = row["id"].rsplit(".", 1)[0] + ".recorded"
    plan.update(rows=rows, sampling={**plan["sampling"], "warmup": 0, "samples": 1})
    planned = os.path.join(out, "recorded-plan.json")
    with open(planned, "w") as file:
        json.dump(plan, file)
    gates = by_gates(json.load(gzip.open(results)))
    same, different = 0, 0
    for program in programs:
        answer = os.path.join(out, f"recorded-{os.path.basename(program)}.json")
        subprocess.run([program, "--plan", planned, "--out", answer], check=True)
        system = json.load(open(answer))
        for row in system["rows"]:
            name = (system["name"], *key(row))
            samples = samples_of(row["outcome"])
            if not samples or name not in gates:
                continue
            records, gate = samples[0], gates[name]
            if records == gate:
                same += 1
            else:
                different += 1
                said = "it waits" if records else "it does not"
                print(f"{name[0]}: {name[2]}: behind a gate it waited in {gate:.0%} of trials, by the records {said}")
    print(f"{same} calls the same, {different} different")


if __name__ == "__main__":
    main(*sys.argv[1:])
