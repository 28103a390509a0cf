"""Recall and precision of an audit and of PyTorch's `set_sync_debug_mode`, by the gate's labels.

    python compare.py LABELS.json AUDIT.json DEBUG.json
"""
import json
import sys


def main():
    labels, audit, debug = (json.load(open(path)) for path in sys.argv[1:4])
    waits = [place for place in audit["places"] if place["reason"] == "wait" and "/calls.py:" in place["place"]]
    found = {place["place"].rsplit(":", 1)[1] for place in waits}
    open_ones = {p["place"].rsplit(":", 1)[-1] for p in audit["places"] if p["reason"] in ("uncertain", "unknown")}
    tools = {"audit": found, "set_sync_debug_mode": {line for line, warned in debug.items() if warned}}
    print(f"{'call':48} {'gate':6} {'audit':10} debug mode")
    for line, label in sorted(labels.items(), key=lambda item: int(item[0])):
        truth = "waits" if label["waits"] else "-"
        said = "waits" if line in found else "uncertain" if line in open_ones else "-"
        mode = "warns" if debug.get(line) else "-"
        wrong = "" if (truth == "waits") == (said == "waits") else "   <- the audit is wrong"
        print(f"{label['name']:48} {truth:6} {said:10} {mode}{wrong}")
    positive = {line for line, label in labels.items() if label["waits"]}
    print(f"\n{len(positive)} calls wait, {len(labels) - len(positive)} do not")
    perfect = True
    for tool, told in tools.items():
        told = told & labels.keys()
        recall = len(told & positive) / max(len(positive), 1)
        precision = len(told & positive) / max(len(told), 1)
        print(f"{tool}: recall {recall:.1%}, precision {precision:.1%}")
        perfect = perfect and (tool != "audit" or recall == precision == 1)
    loads = [place for place in audit["places"] if place["reason"] == "load"]
    print(f"{len(loads)} places load code, {sum(place['count'] for place in loads)} times")
    for process in audit["processes"]:
        if process.get("overhead"):
            print(f"own cost of the audit: {process['overhead']}")
    sys.exit(0 if perfect else 1)


main()
