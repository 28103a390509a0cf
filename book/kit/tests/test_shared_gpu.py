import csv
import pathlib
import stat
import tempfile
import unittest

import shared_gpu

# Stands in for `report`: writes what the script reads of a results file.
REPORT = """#!/usr/bin/env python3
import json, sys
file = sys.argv[sys.argv.index("--out") + 1]
row = {"spec": {"id": "self-audit.enqueue.in-place", "label": "One launch", "unit": "seconds"},
       "series": [{"outcome": {"measured": {"samples": [1e-6, 3e-6, 2e-6]}}}]}
environment = {"host": {"cpu": "A host", "logical_cpus": 4},
               "device": {"model": "A device\\nof two lines", "facts": [["driver", "1.2"]]},
               "program": {"name": "report", "version": "1"}}
with open(file, "w") as out:
    json.dump({"runs": [{"environment": environment, "started": "2026-01-02T03:04:05Z"}], "rows": [row]}, out)
"""


def results(value, **parameters):
    spec = {"id": "launch-path.graph.complete", "label": "A graph", "unit": "seconds", "parameters": parameters}
    return {"rows": [{"spec": spec, "series": [{"outcome": {"measured": {"samples": [value]}}}]}]}


class SharedGpu(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, text):
        file = self.folder / "report"
        file.write_text(text)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return str(file)

    def test_a_row_is_compared_with_one_process(self):
        one = [(results(1.0, operations=100), 5.0)]
        two = [(results(2.0, operations=100), 6.0), (results(4.0, operations=100), 8.0)]
        lines = list(shared_gpu.reduced([(1, one), (2, two)]))
        self.assertEqual(lines[1], ["launch-path.graph.complete", "A graph", "seconds", 2, "3", "2", "4", "3"])
        self.assertEqual([line[0] for line in lines[2:]], ["process", "process"])

    def test_the_case_of_a_row_is_told_by_its_parameters(self):
        self.assertEqual(shared_gpu.medians(results(1.0, operations=10)), {})

    def test_the_table_says_where_it_was_made(self):
        report = self.program(REPORT)
        own = shared_gpu.round_of(report, self.folder, "cpu:0", 2, "round1-of2")
        table = self.folder / "table.csv"
        shared_gpu.write(table, [(2, own)])
        lines = table.read_text().splitlines()
        self.assertIn("# device: A device of two lines", lines)
        self.assertIn("# driver: 1.2", lines)
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
        self.assertEqual(list(rows[0]), shared_gpu.COLUMNS)
        self.assertEqual(rows[0]["median"], "2e-06")

    def test_a_process_that_fails_is_said(self):
        report = self.program("#!/usr/bin/env python3\nimport sys\nsys.exit('no such device')\n")
        with self.assertRaisesRegex(RuntimeError, "round1-of2-process1.json: no such device"):
            shared_gpu.round_of(report, self.folder, "cuda:9", 2, "round1-of2")


if __name__ == "__main__":
    unittest.main()
