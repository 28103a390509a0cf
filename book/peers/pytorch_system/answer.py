"""What came of the rows, and the file that says so."""

import contextlib
import json
import os
import tempfile

from . import code

SCHEMA_VERSION = 2


def measured(samples, order, started, warmup, stopped_by):
    found = {"samples": samples, "order": order, "started": started, "warmup": warmup, "stopped_by": stopped_by}
    return {"measured": found}


def derived(samples):
    return {"derived": {"samples": samples}}


def not_applicable(reason):
    return {"not-applicable": {"reason": reason}}


def skipped(reason):
    return {"skipped": {"reason": reason}}


def failed(reason):
    return {"failed": {"reason": reason}}


def samples_of(outcome):
    """The samples of an outcome; None where it has none."""
    inner = outcome.get("measured") or outcome.get("derived")
    return inner["samples"] if inner else None


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
