"""Every function that measures rows, on the stand-in: no PyTorch and no GPU."""

import contextlib
import io
import json
import math
import os
import re
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import pytorch  # noqa: E402
from pytorch_system import catalogue  # noqa: E402
from pytorch_system.experiments import pytorch_calls  # noqa: E402
from tests import plans, standin  # noqa: E402


def answer_of(rows, gpus=1, **changes):
    """The exit code, the answer and what was said."""
    gpu = changes.pop("gpu", None) or standin.Gpu(gpus)
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        planned, out = os.path.join(folder, "plan.json"), os.path.join(folder, "answer.json")
        with open(planned, "w", encoding="utf-8") as file:
            json.dump(plans.plan(rows, **changes), file)
        with standin.installed(gpu), contextlib.redirect_stderr(said):
            code = pytorch.main(["--plan", planned, "--out", out])
        answer = None
        if os.path.exists(out):
            with open(out, encoding="utf-8") as file:
                answer = json.load(file)
    return code, answer, said.getvalue()


def outcomes(answer, name):
    """The outcomes of a row, by its parameters as a text."""
    found = [row for row in answer["rows"] if row["id"] == name]
    return {json.dumps(row["parameters"], sort_keys=True): row["outcome"] for row in found}


def samples(answer, name):
    return [value for outcome in outcomes(answer, name).values() for value in outcome["measured"]["samples"]]


class EveryRow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = plans.every_row()
        cls.code, cls.answer, cls.said = answer_of(cls.rows, gpus=2)

    def test_every_row_function_runs_and_none_fails(self):
        self.assertEqual(self.code, 0, self.said)
        failed = [(row["id"], row["outcome"]) for row in self.answer["rows"] if "failed" in row["outcome"]]
        self.assertEqual(failed, [])

    def test_the_answer_has_the_schema_that_report_reads(self):
        self.assertEqual(set(self.answer), {"schema_version", "name", "started", "versions", "machine", "code", "rows"})
        self.assertEqual((self.answer["schema_version"], self.answer["name"]), (2, "PyTorch"))
        self.assertRegex(self.answer["started"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(set(self.answer["machine"]), {"model", "fingerprint", "driver", "cpu"})
        self.assertTrue(all(isinstance(text, str) for pair in self.answer["versions"] for text in pair))
        asked = {(row["id"], json.dumps(row["parameters"])): row for row in self.rows}
        for row in self.answer["rows"]:
            self.assertEqual(set(row), {"id", "parameters", "unit", "outcome"})
            self.assertEqual(row["unit"], asked[row["id"], json.dumps(row["parameters"])]["unit"])
            (kind, inner), = row["outcome"].items()
            if kind == "measured":
                self.assertEqual(set(inner) - {"passes"}, {"samples", "order", "started", "slowdown", "warmup", "stopped_by"})
                # Those of recordings are sampled once.
                self.assertTrue(all(one["samples"] == 2 and one["began"] >= 0 for one in inner.get("passes", [])))
                self.assertEqual([len(inner[name]) for name in ("samples", "order", "started")], [2, 2, 2])
                self.assertTrue(all(isinstance(place, int) and place >= 0 for place in inner["order"]))
                self.assertTrue(all(math.isfinite(value) for value in inner["samples"] + inner["started"]))
                self.assertEqual(inner["stopped_by"], "samples")
            else:
                self.assertIn(kind, ("not-applicable", "skipped"))
                self.assertTrue(inner["reason"])

    def test_only_rows_of_other_libraries_are_left_out(self):
        there = {(row["id"], json.dumps(row["parameters"])) for row in self.answer["rows"]}
        left_out = [row for row in self.rows if (row["id"], json.dumps(row["parameters"])) not in there]
        self.assertEqual({row["id"] for row in left_out}, {"async-frontend.host", "overlap.execution.host"})
        self.assertIn("another library", {row["parameters"]["library"] for row in left_out})

    def test_a_call_that_waits_for_its_stream_is_seen_to_block_and_one_that_launches_is_not(self):
        waits = {"item", "copy", "print", "any", "nonzero", "rows-from-host", "upload", "from-pageable", "to-pageable"}
        for name in ("launch", "view", "sum", "rows-on-device", "to-pinned", *waits):
            seen = set(samples(self.answer, f"overlap.implicit.{name}.blocks"))
            self.assertEqual(seen, {1.0 if name in waits else 0.0}, name)
        by_mode = outcomes(self.answer, "overlap.implicit.from-pinned.blocks")
        for parameters, outcome in by_mode.items():
            self.assertEqual(set(outcome["measured"]["samples"]), {0.0 if "non-blocking" in parameters else 1.0})

    def test_what_the_gate_says_of_a_call_stands_beside_what_the_debug_mode_says(self):
        def seen(name, call):
            return set(outcomes(self.answer, f"pytorch-calls.{name}")[json.dumps({"call": call})]["measured"]["samples"])

        # Both see a read; the mode is silent where a program waits for an event or a copy, and about what does not wait.
        for call, expected in {
            "item": (1, 1), "tolist": (1, 1), "masked-select": (1, 1), "where-one": (1, 1), "where-three": (0, 0),
            "boolean-assign-scalar": (0, 0), "boolean-assign-tensor": (1, 1), "repeat-interleave": (1, 1),
            "repeat-interleave-sized": (0, 0), "event-synchronize": (1, 0), "to-device-pageable-non-blocking": (1, 0),
            "to-device-pinned-non-blocking": (0, 0), "wait-stream": (0, 0), "grad-scaler-step": (1, 1), "adam-step": (0, 0),
            "sum": (0, 0),
        }.items():
            waits, warns = expected
            self.assertEqual((seen("blocks", call), seen("warns", call)), ({float(waits)}, {float(warns)}), call)

    def test_a_call_is_held_up_by_its_own_stream_alone_and_timed_with_and_without_work_before_it(self):
        def seen(name, call):
            return outcomes(self.answer, f"pytorch-calls.{name}")[json.dumps({"call": call})]["measured"]["samples"]

        for call in ("item", "nonzero", "event-synchronize", "sum"):
            self.assertEqual(set(seen("blocks-other", call)), {0.0}, call)
            # The work of the stand-in takes no time.
            self.assertTrue(all(seconds > 0 for name in ("ready", "behind") for seconds in seen(name, call)), call)

    def test_every_call_that_report_plans_is_known_here(self):
        planned = os.path.join(os.path.dirname(plans.__file__), "../../../src/suite/experiment/pytorch_calls.rs")
        with open(planned, encoding="utf-8") as file:
            named = re.findall(r"^    \"([\w-]+)\",$", file.read(), re.M)
        self.assertEqual(named, list(pytorch_calls.CALLS))

    def test_of_all_synchronizations_only_that_of_the_device_waits_for_another_stream(self):
        for what, expected in (("device", 1.0), ("stream", 0.0), ("item", 0.0), ("event", 0.0)):
            self.assertEqual(set(samples(self.answer, f"synchronize.scope.{what}.blocks")), {expected}, what)

    def test_the_depth_of_the_queue_is_the_number_of_launches_that_came_back(self):
        self.assertEqual(set(samples(self.answer, "launch-path.queue.depth")), {float(standin.DEPTH)})

    def test_what_a_call_does_inside_is_taken_from_the_recorded_calls(self):
        def value(name):
            return set(samples(self.answer, f"implementation.{name}"))

        self.assertEqual(value("device-synchronize.stream-call"), {0.0})
        self.assertEqual(value("numpy.returns"), {0.0})
        self.assertEqual(value("nonzero.count-read"), {1.0})
        self.assertEqual(value("pin-memory.pinned-allocation"), {1.0})
        self.assertEqual(value("copy.asynchronous-call"), {1.0})
        self.assertEqual(value("copy.waits-inside"), {0.0, 1.0})
        self.assertEqual(value("copy.other-stream"), {0.0})
        self.assertEqual(value("order.starts-in-order"), {1.0})

    def test_rows_that_need_a_profiler_are_measured_after_all_others(self):
        def starts(recorded):
            for row in self.answer["rows"]:
                begins = row["id"].startswith(("implementation.", "sync-points.idle", "self-audit.stopwatch.span"))
                # A wait is timed by the host's clock, which a profiler slows.
                begins = begins and row["id"] != "implementation.idle-device.waiting"
                if begins == recorded and "measured" in row["outcome"]:
                    yield from row["outcome"]["measured"]["started"]

        self.assertGreater(min(starts(True)), max(starts(False)))


class OneReason(unittest.TestCase):
    def test_a_call_that_cannot_be_made_takes_no_other_with_it(self):
        rows = [plans.row(f"overlap.implicit.{name}.blocks", {"bytes": 40, "busy_seconds": 0.001}) for name in ("array", "item")]
        with unittest.mock.patch("pytorch_system.experiments.implicit.numpy", side_effect=catalogue.NotApplicable("none")):
            _, answer, _ = answer_of(rows)
        array, item = (row["outcome"] for row in answer["rows"])
        self.assertEqual(array, {"not-applicable": {"reason": "none"}})
        self.assertEqual(item["measured"]["samples"], [1.0, 1.0])


class KernelsOfOnesOwn(unittest.TestCase):
    ROWS = [plans.row(f"self-audit.kernel.{name}", {"kernel": "saxpy 4096"}) for name in ("gate", "events", "loop", "cold")]

    def reasons(self, **changes):
        code, answer, said = answer_of(self.ROWS, **changes)
        self.assertEqual(code, 0, said)
        outcomes = {row["id"].rsplit(".")[-1]: row["outcome"] for row in answer["rows"]}
        # The gate's batches are no way of a program with PyTorch.
        self.assertEqual(set(outcomes), {"events", "loop", "cold"})
        return {name: outcome.get("skipped", {}).get("reason") for name, outcome in outcomes.items()}

    def test_without_triton_only_the_row_with_cold_caches_says_so(self):
        with unittest.mock.patch.object(standin, "make_triton", lambda: None):
            reasons = self.reasons()
        self.assertEqual(reasons, {"events": None, "loop": None, "cold": "Triton is not installed beside PyTorch"})

    def test_a_pytorch_that_compiles_no_kernels_says_so_in_each_row(self):
        gpu = standin.Gpu()
        gpu.compiles = False
        self.assertEqual(set(self.reasons(gpu=gpu).values()), {"this version of PyTorch compiles no kernels in CUDA C++"})


class OneGpu(unittest.TestCase):
    def test_rows_of_two_gpus_are_skipped_with_the_reason(self):
        parameters = {"size": 8, "iters": 2}
        rows = [plans.row(f"idle-device.{which}", parameters) for which in ("same", "other")]
        # A row that is computed is whoever's who reads the answer.
        code, answer, _ = answer_of([*rows, plans.computed("idle-device.delta", parameters)])
        self.assertEqual(code, 0)
        self.assertEqual([row["outcome"] for row in answer["rows"]], [{"skipped": {"reason": "PyTorch finds one GPU"}}] * 2)


if __name__ == "__main__":
    unittest.main()
