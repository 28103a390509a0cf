"""Whether an iteration of a loop of `gains.py` takes as long without its line as the audit says: a table.

`FOLDER/NAME.json` is the audit of a loop, `FOLDER/NAME.pair.json` how long an iteration took with and without. It holds where
16 of 20 lie within their intervals, and the intervals' middles are off by at most 10 % in the median. What launches take is told
as a bound, and counts as inside where the bound holds. Two processes differ by some percent in how long they take for the same:
what is told is taken as a part of the iteration that was audited. """
import json
import os
import statistics
import sys

import gains

HERE = os.path.dirname(os.path.abspath(__file__))


def lines():
    """By name: the line that is mended."""
    found, name = {}, None
    for number, text in enumerate(open(os.path.join(HERE, "gains.py"), encoding="utf-8"), 1):
        if text.startswith("def "):
            name = text[4 : text.index("(")]
        if text.rstrip().endswith("# LOST"):
            found[name] = number
    return found


def is_at(place, line):
    """Whether it is this line, or one that it calls."""
    frames = [(frame["file"], frame["line"]) for frame in place.get("stack", [])]
    return place["place"].endswith(f"gains.py:{line}") or any(file.endswith("gains.py") and at == line for file, at in frames)


def main(folder):
    inside, errors, rows = 0, [], [("loop", "ms", "mended", "told", "because", "inside", "off by")]
    for name, line in lines().items():
        try:
            audit = json.load(open(os.path.join(folder, f"{name}.json"), encoding="utf-8"))
            pair = json.load(open(os.path.join(folder, f"{name}.pair.json"), encoding="utf-8"))
        except OSError as error:
            rows.append((name, "", "", f"not measured: {error}", "", "NO", ""))
            continue
        before, after = statistics.median(pair["with"]), statistics.median(pair["without"])
        steady = [process for process in audit["processes"] if process.get("steady")]
        audited = sum(process["wall_ns"] for process in steady) / max(1, sum(process["steady"]["iterations"] for process in steady)) / 1e6
        told = [place for place in audit["idle"] if place.get("without_ns") and is_at(place, line)]
        if not told:
            rows.append((name, f"{before:.2f}", f"{after:.2f}", "nothing", "", "NO", ""))
            continue
        place = min(told, key=lambda place: sum(place["without_ns"]))
        # An iteration that consists of several alike ones is audited as these.
        least, most = (time / 1e6 / audited * before for time in place["without_ns"])
        holds = least <= after <= most
        inside += holds
        is_bound = place["cause"] == "launch"
        errors.append(abs((least if is_bound else (least + most) / 2) - after) / after)
        interval = f"at best {least:.2f}" if is_bound else f"{least:.2f} to {most:.2f}"
        rows.append((name, f"{before:.2f}", f"{after:.2f}", interval, place["cause"], "yes" if holds else "NO",
                     f"{errors[-1]:.1%}" if errors[-1] < 2 else f"{1 + errors[-1]:.1f} ×"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths)).rstrip())
    median = statistics.median(errors) if errors else 1.0
    print(f"{inside} of {len(gains.NAMES)} inside, median error {median:.1%}")
    return inside >= 16 and median <= 0.1


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1]) else 1)
