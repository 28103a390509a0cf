"""What the files of `all` say: call by call, the training loop, and last a table of what holds. Fails where something does not.

    python summary.py FOLDER
"""
import itertools
import json
import os
import statistics
import sys

FOLDER = sys.argv[1]
ROWS = []


def read(name):
    """A file of the folder, or nothing where its part ended with an error."""
    try:
        with open(os.path.join(FOLDER, name)) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def table(name, lines):
    """Prints a table, and keeps it for the book."""
    lines = [line.rstrip() for line in lines]
    print("", *lines, sep="\n")
    with open(os.path.join(FOLDER, name), "w") as file:
        file.write("\n".join(lines) + "\n")


def row(what, found, goal="", holds=None):
    ROWS.append((what, found, goal, "" if holds is None else "yes" if holds else "NO"))


def lines(audit, reasons=("wait",)):
    """The lines of the labelled script that an audit lists. The profiler shortens the file's name."""
    places = [place["place"] for place in audit["places"] if place["reason"] in reasons]
    return {place.rsplit(":", 1)[1] for place in places if "calls.py:" in place}


def calls():
    labels, audit, debug = read("labels.json"), read("calls.json"), read("debug.json")
    if not (labels and audit and debug):
        return row("the labelled script", "a file is missing", "", False)
    found, doubtful = lines(audit) & labels.keys(), lines(audit, ("uncertain", "unknown"))
    told = [f"{'call':48} {'gate':6} {'audit':10} debug mode"]
    for line, label in sorted(labels.items(), key=lambda item: int(item[0])):
        said = "waits" if line in found else "uncertain" if line in doubtful else "-"
        wrong = "" if label["waits"] == (line in found) else "   <- the audit is wrong"
        mode = "warns" if debug.get(line) else "-"
        told.append(f"{label['name']:48} {'waits' if label['waits'] else '-':6} {said:10} {mode}{wrong}")
    table("audit_calls.txt", told)
    truth = {line for line, label in labels.items() if label["waits"]}
    row("calls that wait, and that do not, by the gate", f"{len(truth)}, {len(labels) - len(truth)}", "25, 25",
        len(truth) >= 25 and len(labels) - len(truth) >= 25)
    tools = [("audit", found), ("set_sync_debug_mode", {line for line, warned in debug.items() if warned})]
    for tool, told in tools:
        recall = len(told & truth) / max(len(truth), 1)
        precision = len(told & truth) / max(len(told & labels.keys()), 1)
        for name, share in (("recall", recall), ("precision", precision)):
            goal = ("100 %", share == 1) if tool == "audit" else ()
            row(f"{tool}: {name}", f"{share:.1%}", *goal)
    loads = [place for place in audit["places"] if place["reason"] == "load"]
    row("places that load code, told apart", str(len(loads)), "1 or more", bool(loads))
    for trace in ("trace", "profiler"):
        again = read(f"from-{trace}.json")
        same = again and lines(again) & labels.keys() == found
        count = len(lines(again) & found) if again else 0
        row(f"places again from {trace}.json", f"{count} of {len(found)}", "all, no other", bool(same))


def loop():
    times, audit = read("times.json"), read("loop.json")
    if not (times and audit):
        return row("the training loop", "a file is missing", "", False)
    steps = [f"{'the training loop':32} {'ms/iteration':>12} {'gain':>8} {'waits/iteration':>16}"]
    before = times["seconds"][0]
    for removed, (name, seconds) in enumerate(zip(times["names"], times["seconds"])):
        of = [p for p in audit["places"] if p["reason"] == "wait" and f"iteration-{removed}.py:" in p["place"]]
        waits = sum(place["count"] for place in of) / times["iterations"]
        steps.append(f"{name:32} {seconds * 1e3:12.3f} {1 - seconds / before:8.1%} {waits:16.2f}")
        before = seconds
    table("training_loop.txt", steps)
    first, last = times["seconds"][0], times["seconds"][-1]
    row("the loop without its waits, of the time with them", f"{last / first:.1%}", "less", last < first)
    for name, code, goal in (("planted", "1", "fails"), ("removed", "0", "passes")):
        try:
            with open(os.path.join(FOLDER, f"{name}.code")) as file:
                found = file.read().strip()
        except OSError:
            found = "none"
        row(f"exit code under a budget, waits {name}", found, f"{code}: {goal}", found == code)
    pages = [os.path.join(FOLDER, f"{name}.html") for name in ("calls", "loop")]
    sizes = [os.path.getsize(page) if os.path.exists(page) else 0 for page in pages]
    row("pages: calls.html, loop.html", f"{sizes[0]} B, {sizes[1]} B", "written", all(sizes))


def costs():
    """Rounds in which all ways are taken in turn: the times are medians, and the costs medians of the rounds' ratios. CUPTI's
    records of the device have a cost of their own."""
    def rounds(way):
        return {number: cost for number in range(1, 10) if (cost := read(f"cost-{number}-{way}.json"))}

    goals = {("launch", "calls-none"): 0.02, ("read", "calls-sample"): 0.10, ("launch", "all-sample"): 0.15}
    names = {"calls": "calls alone", "all": "with the device's activity"}
    plain = rounds("without")
    for records, stacks in itertools.product(names, ("none", "sample")):
        way = f"{records}-{stacks}"
        audited = rounds(way)
        for what in ("launch", "read"):
            text = f"{what}, {names[records]}, stacks {stacks}"
            both = [(plain[number][what], cost[what]) for number, cost in audited.items() if number in plain]
            if not both:
                row(text, "a file is missing", "", False)
                continue
            without, cost = (statistics.median(times) for times in zip(*both))
            more, most = statistics.median(b / a for a, b in both) - 1, goals.get((what, way))
            held = (f"at most {most:.0%}", more <= most) if most else ()
            row(text, f"{without:.2f} to {cost:.2f} µs ({more:+.1%}, {len(both)} rounds)", *held)
        for process in (read(f"overhead-{way}.json") or {"processes": []})["processes"]:
            own = process.get("overhead")
            if own:
                text = f"its own part by the self-test, {names[records]}, stacks {stacks}"
                row(text, f"{own['share']:.2%}", "stated", True)


calls()
loop()
costs()
widths = [max(len(row[column]) for row in ROWS) for column in range(4)]
table("audit_held.txt", ["  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths))
                         for cells in [("what", "found", "goal", "holds"), *ROWS]])
sys.exit(1 if any(holds == "NO" for *_, holds in ROWS) else 0)
