"""The comparison of two programs, with programs that write what they are told, and the tables that are kept."""

import contextlib
import io
import json
import os
import stat
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import pairs  # noqa: E402
import sweep  # noqa: E402

PROGRAM = """#!{python}
import json, sys
times, out = {times!r}, sys.argv[sys.argv.index("--out") + 1]
rows = [{{"spec": {{"id": name, "unit": unit, "parameters": {{"n": 1}}, "provenance": {{"measured": {{"clock": "host"}}}}}},
         "series": [{{"outcome": {{"measured": {{"samples": samples}}}}}}]}} for name, unit, samples in times]
json.dump({{"rows": rows}}, open(out, "w"))
"""


class Pairs(unittest.TestCase):
    def compared(self, old, new):
        """The exit code, what is printed, and what is kept."""
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            programs = []
            for name, times in (("old", old), ("new", new)):
                programs.append(os.path.join(folder, name))
                with open(programs[-1], "w", encoding="utf-8") as file:
                    file.write(PROGRAM.format(python=sys.executable, times=times))
                os.chmod(programs[-1], stat.S_IRWXU)
            said, out = io.StringIO(), os.path.join(folder, "pairs.json")
            with contextlib.redirect_stdout(said):
                code = pairs.main([*programs, "--rounds", "6", "--out", out])
            with open(out, encoding="utf-8") as file, open(out[:-5] + ".md", encoding="utf-8") as table:
                return code, said.getvalue(), json.load(file), table.read()

    def test_a_row_whose_interval_lies_above_1_is_slower_and_fails(self):
        old = [("a.same", "seconds", [1.0, 2.0, 3.0]), ("a.slow", "seconds", [1.0]), ("a.fast", "seconds", [2.0])]
        new = [("a.same", "seconds", [2.0]), ("a.slow", "seconds", [1.1]), ("a.fast", "seconds", [1.0])]
        code, said, kept, table = self.compared(old, new)
        verdicts = {row["row"]: (row["verdict"], round(row["ratio"], 3)) for row in kept["rows"]}
        self.assertEqual(verdicts, {"a.same": ("as before", 1.0), "a.slow": ("slower", 1.1), "a.fast": ("faster", 0.5)})
        self.assertEqual((code, "2 of 3 rows" in said), (1, True))
        self.assertIn("| a.slow | 1000000.00 | 1100000.00 | 1.100 | 1.100 to 1.100 | slower |", table)

    def test_a_row_of_one_program_is_listed_and_rates_are_not_compared(self):
        old = [("a", "seconds", [1.0]), ("rate", "bytes per second", [1.0])]
        code, said, kept, _ = self.compared(old, [*old, ("b", "seconds", [1.0])])
        self.assertEqual((code, [row["row"] for row in kept["rows"]]), (1, ["a", "b"]))
        self.assertIn("| b | | | | | not compared: 0 of 6 rounds have it in both |", said)

    def test_too_few_rounds_are_refused(self):
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
            pairs.main(["old", "new", "--rounds", "5"])


class Sweep(unittest.TestCase):
    def test_the_table_of_a_sweep_has_every_cell_and_its_verdict(self):
        cell = {"operation": "add", "type": "fp32", "sizes": [1000], "ours": 1e-6, "theirs": 2e-6, "ratio": 0.5, "low": 0.4,
                "high": 0.6, "bar": 1.1}
        table = sweep.markdown([cell, {**cell, "operation": "sum", "sizes": [3, 5], "high": 1.2}],
                               [(("any", "u8", (7,)), "no room")], [("gt", "fp32", (9,))])
        self.assertIn("| add | fp32 | 1000 | 1.0 | 2.0 | 0.500 | 0.400 to 0.600 | within |", table)
        self.assertIn("| sum | fp32 | 3x5 | 1.0 | 2.0 | 0.500 | 0.400 to 1.200 | above |", table)
        self.assertIn("| any | u8 | 7 | | | | | failed: no room |", table)
        self.assertIn("| gt | fp32 | 9 | | | | | not measured |", table)


if __name__ == "__main__":
    unittest.main()
