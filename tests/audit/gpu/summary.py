"""What the files of `all` say: call by call, the training loop, and last a table of what holds. Fails where something does not.

    python summary.py FOLDER [PART...]

Parts are calls, loop, native, exercise, children, costs and armed; without any, all.
"""
import collections
import json
import os
import re
import statistics
import sys

from order_statistics import of_median

FOLDER = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
EXERCISE = "../../../book/src/listings/hidden_waits.py"
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
    """The lines of the labelled script that an audit lists, each a function of its own: the profiler tells functions."""
    places = [place["place"] for place in audit["places"] if place["reason"] in reasons]
    found = [re.search(r"calls\.py(?::|, from line )(\d+)$", place) for place in places]
    return {match[1] for match in found if match}


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


def functions():
    """Functions of several lines: a trace of the profiler has the waits of the live audit by function."""
    audits = [read("functions.json"), read("from-functions.json")]
    if not all(audits):
        return row("functions of several lines", "a file is missing", "", False)
    counts = [collections.Counter() for _ in audits]
    for audit, count in zip(audits, counts):
        for place in audit["places"]:
            if place["reason"] == "wait" and place["function"] in ("read_once", "read_in_a_loop", "index"):
                count[place["function"]] += place["count"]
    of_functions = all(", from line " in place["place"] for place in audits[1]["places"]
                       if place["reason"] == "wait" and place["function"] in counts[1])
    row("waits by function: live, and by the profiler", *(" ".join(map(str, dict(count).values())) for count in counts),
        counts[0] == counts[1] and len(counts[0]) == 3 and of_functions)


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
    row("the loop without its waits, of the time with them", f"{last / first:.1%}", "below 100 %", last < first)
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


def line_of(script, text):
    """The place of the line of a script that holds a text."""
    with open(os.path.join(HERE, script)) as file:
        return f"{os.path.basename(script)}:{next(number for number, line in enumerate(file, 1) if text in line)}"


def native():
    """The program on cudarc, where there was one: it is built with line tables."""
    audit = read("cudarc.json")
    if audit:
        # The loading of code is one row, of no line.
        places = [place["place"] for place in audit["places"] if place["reason"] != "load"]
        named = sum("cudarc_loop.rs:" in place for place in places)
        row("places of the Rust program with their line", f"{named} of {len(places)}", "all", 0 < named == len(places))


def exercise():
    """The book's exercise: the answers are what an audit finds."""
    audit = read("hidden.json")
    if not audit:
        return row("the hidden waits of the exercise", "a file is missing", "", False)
    hidden = ["images.to(", "torch.tensor([", ".nonzero()", "torch.isfinite(", "{loss:"]
    expected = {line_of(EXERCISE, text) for text in hidden}
    counts = collections.Counter()
    for place in audit["places"]:
        if place["reason"] in ("wait", "copy"):
            counts[os.path.basename(place["place"])] += place["count"]
    # Of 200 iterations: before them, the model is copied.
    found = {place for place, count in counts.items() if count >= 100}
    row("the hidden waits of the exercise", f"{len(found & expected)} of 5, {len(found - expected)} others",
        "5 of 5, 0 others", found == expected)


def children():
    audit = read("children.json")
    if not audit:
        return row("processes that a program starts", "a file is missing", "", False)
    waits = {os.path.basename(place["place"]): place["count"] for place in audit["places"] if place["reason"] == "wait"}
    counts = [waits.get(line_of("children.py", text), 0) for text in ("values.sum().item()", "total.item()")]
    complete = sum(process["complete"] and process["calls"] > 0 for process in audit["processes"])
    row("processes of torchrun and theirs; waits in them", f"{complete}; {counts[0]} and {counts[1]}", "4; 2 and 8",
        complete == 4 and counts == [2, 8] and not audit["warnings"])


def cost(text, values, most=None):
    """How much more something takes. Not over the goal where the interval is not, missed where all of it is."""
    middle, low, high = of_median(values)
    holds = None if most is None or low <= most < high else high <= most
    goal = "" if most is None else f"at most {most:.1%}" + (", not decided" if holds is None else "")
    row(text, f"{middle:+.2%}, {low:+.2%} to {high:+.2%}, {len(values)} pairs", goal, holds)


def costs():
    """Of pairs of processes that take turns, by how much more the one takes that the library came into."""
    ways = {"never": "never in it", "calls-none": "calls alone, stacks none", "calls-sample": "calls alone, stacks sample",
            "all-sample": "with the device's activity, stacks sample", "window": "armed, after it recorded for a second"}
    goals = {("launch", "calls-none"): 0.02, ("read", "calls-sample"): 0.10, ("launch", "all-sample"): 0.15}
    found = read("costs.json")
    if not found:
        return row("what it costs while it records", "a file is missing", "", False)
    for way, name in ways.items():
        for what in ("launch", "read", "step"):
            usual = statistics.median(pair["us"][what] for pair in found[way])
            cost(f"{what} of {usual:.1f} µs, {name}", [pair[what] for pair in found[way]], goals.get((what, way)))


def armed():
    """The same of launches alone, of a program that has nothing else to do."""
    for way, name, most in (("armed", "armed", 0.005), ("never", "never in it", None)):
        try:
            with open(os.path.join(FOLDER, f"launches-{way}.json")) as file:
                pairs = [json.loads(line) for line in file]
        except OSError:
            pairs = []
        if len(pairs) < 15:
            row(f"launch of a C program, {name}", "a file is missing", "", False)
            continue
        cost(f"launch of a C program, {name}", [pair["after"] / pair["before"] - 1 for pair in pairs], most)


PARTS = (calls, functions, loop, native, exercise, children, costs, armed)
for part in PARTS:
    if part.__name__ in (sys.argv[2:] or [part.__name__]):
        part()
widths = [max(len(row[column]) for row in ROWS) for column in range(4)]
table("audit_held.txt", ["  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths))
                         for cells in [("what", "found", "goal", "holds"), *ROWS]])
sys.exit(1 if any(holds == "NO" for *_, holds in ROWS) else 0)
