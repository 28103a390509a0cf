"""What came of the rows, and the file that says so."""

import contextlib
import json
import os
import tempfile

from . import code

SCHEMA_VERSION = 2


def measured(samples, order, started, slowdown, warmup, stopped_by, window=None):
    """`window`: of a group that has samples in each pass, how many rows it has, when the first round began that is kept, and when
    the last ended."""
    found = {"samples": samples, "order": order, "started": started, "slowdown": slowdown, "warmup": warmup}
    if window is not None:
        rows, began, ended = window
        found["passes"] = [{"samples": len(samples), "rows": rows, "began": began, "ended": ended}]
    return {"measured": {**found, "stopped_by": stopped_by}}


def followed(earlier, later):
    """What is left of a row after a further pass. What was measured stays where the pass failed."""
    if "measured" not in earlier:
        return later
    own, more = earlier["measured"], later.get("measured")
    if more is None:
        return {"measured": {**own, "stopped_by": "failure"}}
    lists = {name: own[name] + more[name] for name in ("samples", "order", "started", "slowdown", "warmup", "passes")}
    # Where one pass had no more time, the row has fewer samples than were asked for.
    late = (own["stopped_by"], more["stopped_by"]) == ("time-limit", "samples")
    return {"measured": {**lists, "stopped_by": "time-limit" if late else more["stopped_by"]}}


def not_applicable(reason):
    return {"not-applicable": {"reason": reason}}


def skipped(reason):
    return {"skipped": {"reason": reason}}


def failed(reason):
    return {"failed": {"reason": reason}}


class Answer:
    """The outcomes of a plan's rows. A row that is left out is not in the file."""

    def __init__(self, plan, started, versions, machine):
        self.rows = {row.key: row for row in plan.rows}
        self.outcomes = {}
        self.head = {
            "schema_version": SCHEMA_VERSION,
            "name": "PyTorch",
            "started": started,
            "versions": versions,
            "machine": machine,
            "code": code.digest(),
        }

    def put(self, row, outcome):
        self.outcomes[row.key] = outcome

    def add(self, row, outcome):
        """Puts an outcome behind what earlier passes left of the row."""
        self.put(row, followed(self.outcomes.get(row.key, {}), outcome))

    def passes(self, key, sampling):
        """How many passes have left something of a row that a further one is to add to; None where none is."""
        found = self.outcomes.get(key, {}).get("measured")
        if not found or "passes" not in found or found["stopped_by"] == "failure":
            return None
        spent = sum((one["ended"] - one["began"]) / one["rows"] for one in found["passes"])
        return None if sampling.is_enough(len(found["samples"]), spent) else len(found["passes"])

    def outcome(self, key):
        return self.outcomes.get(key)

    def text(self):
        """The rows in the order of the plan."""
        rows = [
            {"id": row.id, "parameters": row.parameters, "unit": row.unit, "outcome": self.outcomes[key]}
            for key, row in self.rows.items()
            if key in self.outcomes
        ]
        # Without line breaks, which take much longer: it is written every few seconds of a run.
        return json.dumps({**self.head, "rows": rows}, allow_nan=False) + "\n"

    def write(self, path):
        """Puts the file in place whole: a reader sees the old one or the new one."""
        folder = os.path.dirname(os.path.abspath(path))
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".", suffix=".json")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(self.text())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
