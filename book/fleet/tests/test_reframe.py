import copy
import gzip
import json
import pathlib
import shlex
import tempfile
import unittest

from tests import standin

standin.install()
import reframe_syncscope  # noqa: E402

KEPT = pathlib.Path(__file__).resolve().parents[2] / "results" / "one-gpu.json.gz"


class ReFrame(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.results = json.loads(gzip.decompress(KEPT.read_bytes()))
        # Some rows of each kind are enough.
        cls.results["rows"], cls.results["timelines"] = cls.results["rows"][::8], []
        # Those that are there were planned, and no more.
        cls.results["plan"]["runs"] = sum(run["system"] == "syncscope" for run in cls.results["runs"])

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def regression(self, results, **variables):
        (self.folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
        return reframe_syncscope.SyncscopeTest(self.folder, **variables)

    def changed(self, unit, factor):
        """The kept results, with the samples of one row times a factor, and the row's name."""
        results = copy.deepcopy(self.results)
        for row in results["rows"]:
            outcomes = [series["outcome"] for series in row["series"] if series["run"].startswith("syncscope")]
            if row["spec"]["unit"] == unit and all("measured" in outcome for outcome in outcomes):
                for outcome in outcomes:
                    own = outcome["measured"]
                    own["samples"] = [factor * sample for sample in own["samples"]]
                return results, reframe_syncscope.name_of(row["spec"])
        raise AssertionError(unit)

    def test_each_measured_row_is_a_variable_with_its_unit_and_a_name_of_its_own(self):
        values, wrong = self.regression(self.results).performance()
        own = [row["spec"] for row in self.results["rows"] if any(
            "measured" in series["outcome"] and series["run"].startswith("syncscope") for series in row["series"]
        )]
        names = {reframe_syncscope.name_of(spec) for spec in own}
        self.assertEqual((len(names), wrong), (len(own), []))
        self.assertLessEqual(names, set(values))
        self.assertIn("bytes-per-second", {unit for _, unit in values.values()})

    def test_the_results_agree_with_themselves(self):
        test = self.regression(self.results, baseline=str(KEPT))
        self.assertEqual(test.performance()[1], [])
        self.assertGreater(len(test.reference["*"]), 50)

    def test_a_time_that_is_longer_than_the_tolerance_is_named_and_a_shorter_one_is_not(self):
        for factor, tolerance, is_wrong in ((1.3, 0.2, True), (1.3, 0.5, False), (0.5, 0.2, False)):
            results, name = self.changed("seconds", factor)
            wrong = self.regression(results, baseline=str(KEPT), tolerance=tolerance).performance()[1]
            self.assertEqual(wrong, [name] if is_wrong else [])

    def test_a_rate_is_worse_where_it_is_lower(self):
        limits = reframe_syncscope.references({"rate": (10.0, "bytes-per-second"), "count": (3, "number")}, 0.2)
        self.assertEqual(limits, {"rate": (10.0, -0.2, None, "bytes-per-second")})

    def test_a_row_that_only_the_baseline_has_fails_nothing(self):
        results, name = self.changed("seconds", 1.0)
        results["rows"] = [row for row in results["rows"] if reframe_syncscope.name_of(row["spec"]) != name]
        self.assertEqual(self.regression(results, baseline=str(KEPT)).performance()[1], [])

    def test_results_that_did_not_end_are_not_sane(self):
        self.assertTrue(self.regression(self.results).sanity())
        interrupted, missing, empty = (copy.deepcopy(self.results) for _ in range(3))
        interrupted["runs"][0]["outcome"] = "interrupted"
        missing["plan"]["runs"] += 1
        empty["rows"] = []
        for results in (interrupted, missing, empty):
            self.assertFalse(self.regression(results).sanity())

    def test_the_command_is_one_word_an_option_whatever_is_in_it(self):
        suite = "it's $(a) suite.yaml"
        command = self.regression(self.results, suite=suite).command()
        self.assertEqual(shlex.split(command)[:4], ["report", "run", "--suite", suite])


if __name__ == "__main__":
    unittest.main()
