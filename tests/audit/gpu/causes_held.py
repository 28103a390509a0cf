"""Whether the audits of `causes.py`, `FOLDER/CAUSE.json`, name each planted cause at its line: a table."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def planted():
    """By cause: the line and the name of it."""
    lines = open(os.path.join(HERE, "causes.py"), encoding="utf-8").read().splitlines()
    names = {"interpreter-lock": "lock", "page-fault": "pages", "launch": "launches", "lock": "queue", "input-output": "pipe"}
    found = {}
    for number, text in enumerate(lines, 1):
        if "# IDLE " in text:
            cause = text.rsplit("# IDLE ", 1)[1]
            found[{"descheduled": "busy"}.get(cause, names.get(cause, cause))] = (number, cause)
    return found


def main(folder):
    wrong = 0
    for program, (line, cause) in planted().items():
        path = os.path.join(folder, f"{program}.json")
        if not os.path.exists(path):
            print(f"{program:10} not audited")
            wrong += 1
            continue
        audit = json.load(open(path, encoding="utf-8"))
        total = sum(place["idle_ns"] for place in audit["idle"]) or 1
        right = sum(place["idle_ns"] for place in audit["idle"] if place["cause"] == cause)
        at = sum(
            place["idle_ns"]
            for place in audit["idle"]
            if place["cause"] == cause and (place["place"].endswith(f"causes.py:{line}") or cause == "descheduled")
        )
        holds = at >= 0.9 * total
        wrong += not holds
        iterations = sum(process["steady"]["iterations"] for process in audit["processes"] if process.get("steady"))
        first = ", ".join(f"{place['cause']} {place['place'].rsplit('/')[-1]} {place['idle_ns'] / total:.0%}" for place in audit["idle"][:4])
        print(f"{program:10} {'holds' if holds else 'FAILS'}: cause {right / total:.1%}, line {at / total:.1%}, {iterations} iterations; {first}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) > 0)
