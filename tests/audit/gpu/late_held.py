"""Whether the rank that was late is named with its line, and none where ranks were equal: a table of the audits in FOLDER, which
`late` wrote. Equal ranks may name one in one of 20 audits."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def line(how):
    for number, text in enumerate(open(os.path.join(HERE, "late.py"), encoding="utf-8"), 1):
        if text.rstrip().endswith(f"# LATE: {how}"):
            return number
    raise SystemExit(f"no line of late.py is late by {how}")


def main(folder):
    late, equal, alarms, wrong = 0, 0, 0, 0
    for name in sorted(file for file in os.listdir(folder) if file.endswith(".json")):
        audit = json.load(open(os.path.join(folder, name), encoding="utf-8"))
        ranks = sum(process.get("steady") is not None for process in audit["processes"])
        told = audit.get("late")
        said = f"{told['rank']} at {told.get('place', '').rsplit('/')[-1]}, {told.get('cause')}, {told['more_ns'] / 1e6:.2f} ms" if told else "none"
        if name.startswith("equal"):
            equal, alarms = equal + 1, alarms + (told is not None)
            holds = told is None and ranks == 2
        else:
            _, rank, how = name.removesuffix(".json").split("-")[:3]
            late += 1
            holds = bool(told) and told["rank"] == f"rank {rank}" and told.get("place", "").endswith(f"late.py:{line(how)}")
            holds = holds and told.get("cause") == how
            wrong += not holds
        print(f"{name:30} {ranks} ranks steady, late: {said}{'' if holds else '   <- WRONG'}")
    print(f"late: {late - wrong} of {late} right; equal: {alarms} of {equal} alarmed")
    return late > 0 and not wrong and equal >= 20 and alarms * 20 <= equal


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1]) else 1)
