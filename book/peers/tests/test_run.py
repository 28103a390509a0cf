"""A run that does not go well: refused plans, absent GPUs, failures, interrupts. On the stand-in."""

import contextlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import pytorch  # noqa: E402
from pytorch_system import gate, host, plan, sampling  # noqa: E402
from pytorch_system import run as run_module  # noqa: E402
from pytorch_system.plan import Sampling  # noqa: E402
from tests import plans, standin  # noqa: E402
from tests.test_rows import answer_of, outcomes  # noqa: E402

SCRIPT = pytorch.__file__
ITEM = plans.row("overlap.nonzero.whole", {"elements": 8, "scales": 1})
LOOP = plans.row("synchronize.loop.each", {"size": 8, "iters": 2})


def said_of(text, arguments=()):
    """The exit code and what the script says of a plan with this text, in a process without PyTorch."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plan.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        # Nothing but the standard library.
        command = [sys.executable, "-S", SCRIPT, "--plan", path, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr.replace(path, "PLAN"), done.stdout


class Refused(unittest.TestCase):
    def refuses(self, text, part):
        code, said, _ = said_of(text)
        self.assertEqual((code, said.count("\n")), (2, 1), said)
        self.assertIn(part, said)

    def test_a_plan_that_cannot_be_read_is_refused_in_one_line(self):
        self.refuses("{", "PLAN is not a plan in JSON")
        self.refuses("[]", "a plan is an object")
        self.refuses('{"schema_version": 9}', "schema version is 9")
        self.refuses("[" * 100_000, "PLAN is not a plan in JSON")

    def test_a_plan_that_asks_for_what_is_not_there_is_refused_with_the_place(self):
        for change, part in (
            ({"rows": [{"id": 1}]}, "`rows[0]` has no text `id`"),
            ({"rows": [{**LOOP, "parameters": {"size": [1]}}]}, "the parameter `size` is neither"),
            ({"rows": [{**LOOP, "provenance": {}}]}, "`rows[0]`: `provenance`"),
            ({"rows": [LOOP, LOOP]}, "`synchronize.loop.each (iters 2, size 8)` stands there twice"),
            ({"device": "cpu:0"}, "'cpu:0'; PyTorch's rows need an NVIDIA GPU"),
            ({"sampling": {"relative_error": 0.1}}, "has the rule `relative_error`"),
            ({"sampling": {"samples": None, "time_limit": None}}, "never stops"),
            ({"sampling": {"samples": 0}}, "`sampling.samples` is 0"),
            ({"sampling": {"time_limit": -1}}, "`sampling.time_limit` is -1"),
            ({"sampling": {"fewest": 0}}, "`sampling.fewest` is 0"),
            ({"sampling": {"seed": 0.5}}, "`sampling.seed` is 0.5"),
            ({"sampling": {"passes": 0}}, "`sampling.passes` is 0"),
            ({"sampling": {"samples": 2, "passes": 3}}, "more than the 2 samples"),
        ):
            with self.subTest(part):
                self.refuses(json.dumps({**plans.plan([LOOP], **{k: v for k, v in change.items() if k == "sampling"}),
                                         **{k: v for k, v in change.items() if k != "sampling"}}), part)

    def test_a_file_that_is_not_there_is_named(self):
        command = [sys.executable, SCRIPT, "--plan", "/nowhere/plan.json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (2, "/nowhere/plan.json: No such file or directory\n"))

    def test_a_process_that_is_attended_ends_with_its_standard_input_wherever_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(plans.plan([LOOP]), file)
            with open(os.path.join(folder, "torch.py"), "w", encoding="utf-8") as file:
                # It is still being loaded when the input ends, and where that is nobody's matter, it cannot be.
                file.write("import sys, threading\nprint('loading', flush=True)\n"
                           "'--attended' in sys.argv and threading.Event().wait()\nraise ImportError('no')\n")
            for arguments, code in ((["--attended"], 130), ([], 2)):
                command = [sys.executable, SCRIPT, "--plan", path, "--out", os.path.join(folder, "answer"), *arguments]
                environment = {**os.environ, "PYTHONPATH": folder}
                with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
                                      stderr=subprocess.DEVNULL) as run:
                    self.assertEqual(run.stdout.readline(), b"loading\n")
                    run.stdin.close()
                    self.assertEqual(run.wait(timeout=60), code)

    def test_without_pytorch_one_line_says_so(self):
        self.refuses(json.dumps(plans.plan([LOOP])), "PyTorch is not installed in this environment")

    def test_without_a_gpu_or_without_that_one_a_line_says_so(self):
        code, answer, said = answer_of([LOOP], gpus=0)
        self.assertEqual((code, answer), (2, None))
        self.assertIn("finds no CUDA GPU here", said)
        code, answer, said = answer_of([LOOP], gpus=1, device="cuda:3")
        self.assertEqual((code, answer, said), (2, None, "there is no GPU cuda:3: PyTorch finds cuda:0\n"))

    def test_a_check_needs_no_pytorch(self):
        rows = [LOOP, plans.row("nobody.knows", {}), {**LOOP, "parameters": {"size": 8, "new": 1}}]
        code, _, listed = said_of(json.dumps(plans.plan(rows)), ["--check"])
        self.assertEqual(code, 0)
        self.assertIn("measured: synchronize.loop.each (iters 2, size 8)", listed)
        self.assertIn("left out: nobody.knows", listed)
        self.assertIn("refused: synchronize.loop.each (new 1, size 8): the script for PyTorch does not know", listed)


class Failures(unittest.TestCase):
    def test_a_group_that_fails_says_so_in_its_rows_and_the_others_go_on(self):
        huge = plans.row("synchronize.loop.each", {"size": 8})
        code, answer, _ = answer_of([huge, LOOP])
        self.assertEqual(code, 0)
        failed, measured = (row["outcome"] for row in answer["rows"])
        self.assertEqual(failed, {"failed": {"reason": "synchronize.loop.each (size 8): the plan's row has no parameter `iters`"}})
        self.assertEqual(len(measured["measured"]["samples"]), 2)

    def test_a_parameter_that_is_not_known_fails_the_row_alone(self):
        odd = {**LOOP, "parameters": {"size": 8, "iters": 2, "new": 1}}
        _, answer, _ = answer_of([odd, LOOP])
        self.assertIn("does not know the parameter `new`", answer["rows"][0]["outcome"]["failed"]["reason"])
        self.assertIn("measured", answer["rows"][1]["outcome"])

    def test_a_row_that_nobody_measures_is_left_out(self):
        _, answer, _ = answer_of([plans.row("nobody.knows", {}), LOOP])
        self.assertEqual([row["id"] for row in answer["rows"]], [LOOP["id"]])

    def test_an_error_that_stays_ends_the_run_with_what_there_is(self):
        gpu = standin.Gpu()

        def spoil(lab, p):
            gpu.broken = "CUDA error: an illegal memory access was encountered"
            lab.synchronize()

        rows = [plans.row("synchronize.same.a", {"size": size}) for size in range(2, 8)]
        rows.insert(3, plans.row("synchronize.timing.without", {"size": 8}))
        recipe = pytorch.catalogue.RECIPES["synchronize.timing.without"]
        broken = {**pytorch.catalogue.RECIPES, "synchronize.timing.without": type(recipe)(
            spoil, recipe.ids, recipe.parameters, recipe.together, recipe.recorded)}
        in_order = unittest.mock.patch("pytorch_system.run.Run.in_order", lambda run, groups: [(0, group) for group in groups])
        with in_order, unittest.mock.patch.dict("pytorch_system.catalogue.RECIPES", broken):
            code, answer, said = answer_of(rows, gpu=gpu)
        self.assertEqual(code, 1)
        self.assertIn("the run ended early", said)
        kinds = [next(iter(row["outcome"])) for row in answer["rows"]]
        self.assertEqual(kinds, ["measured"] * 3 + ["failed"] * 4)
        self.assertTrue(all("illegal memory access" in row["outcome"]["failed"]["reason"]
                            for row in answer["rows"] if "failed" in row["outcome"]))

    def test_without_a_profiler_recorded_rows_say_so(self):
        recorded = plans.row("implementation.nonzero.count-read", {})
        with unittest.mock.patch("tests.standin.Gpu.call", lambda *arguments: None):
            _, answer, _ = answer_of([recorded])
        self.assertIn("recorded no call of CUDA", answer["rows"][0]["outcome"]["failed"]["reason"])


class Interrupts(unittest.TestCase):
    def setUp(self):
        before = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}
        self.addCleanup(lambda: [signal.signal(name, handler) for name, handler in before.items()])

    def test_an_interrupt_keeps_complete_rounds_and_marks_the_rest(self):
        gpu, calls = standin.Gpu(), []
        plain = gpu.call

        def call(name, *arguments):
            calls.append(name)
            # In the fourth round, of those that are kept the second.
            if len([one for one in calls if one == "cudaEventRecord"]) == 7:
                os.kill(os.getpid(), signal.SIGINT)
            plain(name, *arguments)

        gpu.call = call
        rows = [plans.row("synchronize.timing.events", {"size": 8}),
                *(plans.row("synchronize.same.a", {"size": size}) for size in range(2, 10))]
        code, answer, _ = answer_of(rows, gpu=gpu, sampling={"samples": 50, "warmup": 2})
        self.assertEqual(code, 130)
        cut = answer["rows"][0]["outcome"]["measured"]
        self.assertEqual((len(cut["samples"]), cut["stopped_by"]), (2, "interrupt"))
        later = [row["outcome"] for row in answer["rows"] if "skipped" in row["outcome"]]
        self.assertTrue(later)
        self.assertTrue(all("interrupted before" in outcome["skipped"]["reason"] for outcome in later))

    def test_an_interrupt_between_two_passes_marks_the_rows_that_miss_one(self):
        plain = run_module.Run.cases

        def cases(run, group, number):
            if number == 1:
                os.kill(os.getpid(), signal.SIGINT)
            return plain(run, group, number)

        with unittest.mock.patch.object(run_module.Run, "cases", cases):
            code, answer, _ = answer_of(Passes.ROWS, sampling=Passes.SAMPLING)
        found = [(len(row["outcome"]["measured"]["samples"]), row["outcome"]["measured"]["stopped_by"])
                 for row in answer["rows"]]
        self.assertEqual((code, found), (130, [(3, "interrupt")] * 3))

    def test_what_was_measured_is_written_between_groups_where_the_last_time_is_a_while_ago(self):
        written = []
        write = pytorch.Answer.write

        def spy(answer, path):
            written.append(sum("measured" in outcome for outcome in answer.outcomes.values()))
            write(answer, path)

        rows = [plans.row("synchronize.same.a", {"size": size}) for size in (2, 3, 4)]
        for often, expected in ((0.0, [0, 1, 2, 3]), (1e9, [0, 3])):
            written.clear()
            with (unittest.mock.patch.object(pytorch.Answer, "write", spy),
                  unittest.mock.patch("pytorch_system.run.OFTEN", often)):
                answer_of(rows)
            self.assertEqual(written, expected)


class Rounds(unittest.TestCase):
    def sample(self, cases, rules, interrupted=lambda: False, clock=None, **more):
        ticks = iter(range(10_000))
        clock = clock or (lambda: float(next(ticks)))
        return sampling.sample(cases, rules, random.Random(1), lambda: None, interrupted, 0.0, clock, **more)

    def test_each_case_runs_once_a_round_in_an_order_that_varies(self):
        ran = []
        cases = [(name, lambda name=name: ran.append(name) or 1.0) for name in "abc"]
        kept = self.sample(cases, Sampling(2, 20, None, 0))
        rounds = [ran[at:at + 3] for at in range(0, len(ran), 3)]
        self.assertEqual((len(rounds), kept.stopped_by), (22, "samples"))
        self.assertTrue(all(sorted(one) == list("abc") for one in rounds))
        self.assertGreater(len({tuple(one) for one in rounds}), 3)
        for number, one in enumerate(rounds[2:]):
            self.assertEqual([kept.order["abc".index(name)][number] for name in one], [0, 1, 2])
        self.assertTrue(all(a < b for a, b in zip(kept.started[0], kept.started[0][1:])))

    def test_a_time_limit_leaves_a_few_rounds_and_bounds_the_warm_up(self):
        count = []
        kept = self.sample([("a", lambda: count.append(1) or 1.0)], Sampling(50, 100, 1e-9, 0))
        self.assertEqual((len(kept.values[0]), kept.stopped_by), (plan.MINIMUM, "time-limit"))
        self.assertEqual(len(count), plan.MINIMUM + 1)

    def test_the_fewest_rounds_are_those_that_the_plan_states(self):
        kept = self.sample([("a", lambda: 1.0)], Sampling(1, 100, 1e-9, 0, 7))
        self.assertEqual((len(kept.values[0]), kept.stopped_by), (7, "time-limit"))

    def test_a_warm_up_lasts_until_the_samples_do_not_move_and_is_kept_apart(self):
        values = iter([4.0, 3.0, 2.0, 2.0, 5.0])
        kept = self.sample([("a", lambda: next(values))], Sampling(3, 1, None, 0))
        self.assertEqual((kept.warmup, kept.values), ([[4.0, 3.0, 2.0, 2.0]], [[5.0]]))
        falling = iter(range(100, 0, -10))
        kept = self.sample([("a", lambda: float(next(falling)))], Sampling(3, 1, None, 0))
        self.assertEqual(len(kept.warmup[0]), 9)

    def test_a_thread_leaves_a_slowed_processor_and_warms_up_where_it_goes(self):
        processors = Processors([1.0, 1.0, 1.0, 1.0])
        numbers = iter(range(100))

        def case():
            number = next(numbers)
            # The third round is kept; before the fourth, the processor is slowed.
            processors.times[processors.own] = 1.9 if number == 2 else 1.0
            return float(number)

        kept = self.sample([("a", case)], Sampling(2, 3, None, 0), host=processors.host)
        self.assertEqual((kept.warmup, kept.values, processors.own), ([[0.0, 1.0, 3.0]], [[2.0, 4.0, 5.0]], 2))
        self.assertGreater(processors.host.charged, 0.0)
        self.assertEqual(kept.slowdown, [[1.9, 1.0, 1.0]])

    def test_a_sample_is_kept_with_how_slow_the_host_was_before_or_after_it_whichever_is_more(self):
        processors = Processors([1.0])
        # What a piece of work takes behind each call.
        behind = iter([1.0, 1.9, 1.0, 1.25, 1.9])

        def case():
            processors.times = [next(behind)]
            return 1.0

        kept = self.sample([("a", case)], Sampling(0, 5, None, 0), host=processors.host)
        self.assertEqual(kept.slowdown, [[1.0, 1.9, 1.9, 1.25, 1.9]])
        self.assertEqual(self.sample([("a", lambda: 1.0)], Sampling(0, 2, None, 0)).slowdown, [[]])

    def test_without_a_warm_up_and_with_an_empty_account_no_processor_is_left(self):
        for warmup, charged in ((0, 0.0), (2, 1e9)):
            processors = Processors([1.0, 1.0, 1.0, 1.0])
            processors.host.settle()
            processors.host.charge(charged)

            def case():
                processors.times[3] = 1.9
                return 1.0

            kept = self.sample([("a", case)], Sampling(warmup, 3, None, 0), host=processors.host)
            self.assertEqual((processors.own, len(kept.warmup[0])), (3, warmup))

    def test_a_long_call_without_a_warm_up_leaves_a_slowed_processor(self):
        processors = Processors([1.0, 1.0, 1.0, 1.0])
        processors.host.settle()

        def case():
            time.sleep(2 * sampling.LONG)
            processors.times[3] = 1.9
            return 1.0

        kept = self.sample([("a", case)], Sampling(0, 3, None, 0), host=processors.host)
        self.assertEqual((processors.own, kept.slowdown), (2, [[1.9, 1.0, 1.0]]))

    def test_a_slowed_processor_is_left_for_the_first_that_is_not_slowed(self):
        processors = Processors([1.0, 1.0, 1.0, 1.0])
        self.assertFalse(processors.host.settle())
        for times, own in (
            ([1.1, 1.1, 1.1, 1.9], 2),
            ([1.0, 1.0, 1.25, 1.0], 2),
            ([1.8, 1.5, 1.9, 1.9], 1),
            ([1.0, 1.9, 1.9, 1.9], 1),  # It rests.
        ):
            processors.times = times
            processors.host.settle()
            self.assertEqual(processors.own, own, times)
        processors.now += host.REST
        processors.host.settle()
        self.assertEqual(processors.own, 0)

    def test_the_first_search_finds_the_fastest_of_all_and_one_interrupted_piece_moves_nothing(self):
        processors = Processors([1.9, 1.0, 1.8, 1.2])
        processors.host.settle()
        self.assertEqual(processors.own, 1)
        pieces = iter([1.9, 1.1, 2.0])
        processors.host.piece = lambda: next(pieces)
        processors.host.settle()
        self.assertEqual(processors.own, 1)

    def test_a_sample_that_is_no_number_fails_with_the_name_of_its_case(self):
        with self.assertRaisesRegex(sampling.CaseFailed, "a: a sample is nan"):
            self.sample([("a", lambda: float("nan"))], Sampling(0, 1, None, 0))

    def test_an_interrupt_before_the_first_round_keeps_nothing(self):
        with self.assertRaises(sampling.Interrupted):
            self.sample([("a", lambda: 1.0)], Sampling(0, 1, None, 0), lambda: True)


class Processors:
    """Processors on which a piece of work takes such times; the thread is kept on the last one."""

    def __init__(self, times):
        self.times, self.own, self.now = times, len(times) - 1, 0.0
        self.host = host.Host(lambda: self.times[self.own], lambda: self.now, self)

    def kept_on(self):
        return self.own

    def choices(self):
        return sorted(range(len(self.times)), reverse=True)

    def stay_on(self, own):
        self.own = own


class Gates(unittest.TestCase):
    def setUp(self):
        self.gpu = standin.Gpu()
        self.torch = standin.make(self.gpu)
        self.gate = gate.Gate(self.torch, standin.Driver(self.gpu))
        self.stream = self.torch.cuda.Stream()

    def test_a_closed_gate_holds_its_stream_and_is_open_after_the_block(self):
        with self.gate.closed([self.stream], 60.0) as hold:
            self.assertFalse(self.stream.query())
        self.assertTrue(self.stream.query())
        self.assertFalse(hold.late)

    def test_a_gate_opens_when_the_call_behind_it_fails(self):
        with self.assertRaises(KeyboardInterrupt), self.gate.closed([self.stream], 60.0):
            raise KeyboardInterrupt
        self.assertTrue(self.stream.query())

    def test_a_gate_opens_by_itself_when_the_limit_is_over(self):
        with self.gate.closed([self.stream], 0.01) as hold:
            self.stream.synchronize()
            self.assertTrue(hold.late)

    def test_a_gate_that_cannot_be_closed_leaves_no_thread_behind(self):
        threads = threading.active_count()
        self.gpu.broken = "CUDA error: unknown error"
        with self.assertRaisesRegex(RuntimeError, "unknown error"), self.gate.closed([self.stream], 60.0):
            self.fail("the gate was closed")
        self.assertEqual(threading.active_count(), threads)

    def test_a_word_is_never_set_back(self):
        numbers = []
        for _ in range(3):
            with self.gate.closed([self.stream], 60.0):
                numbers.append(self.gate.word.value)
        self.assertEqual((numbers, self.gate.word.value), ([0, 1, 2], 3))


class Passes(unittest.TestCase):
    ROWS = [plans.row("synchronize.same.a", {"size": size}) for size in (2, 3, 4)]
    SAMPLING = {"samples": 7, "passes": 3, "warmup": 2, "time_limit": 1e9}

    def test_each_pass_goes_through_all_groups_and_adds_its_share(self):
        _, answer, _ = answer_of(self.ROWS, sampling=self.SAMPLING)
        found = [row["outcome"]["measured"] for row in answer["rows"]]
        for one in found:
            self.assertEqual([part["samples"] for part in one["passes"]], [3, 2, 2])
            self.assertEqual([len(one[name]) for name in ("samples", "order", "started")], [7, 7, 7])
            self.assertGreaterEqual(len(one["warmup"]), 2 + 1 + 1)
            self.assertEqual(one["stopped_by"], "samples")
            self.assertTrue(len(one["slowdown"]) in (0, 7) and all(times >= 1.0 for times in one["slowdown"]))
        for earlier, later in ((0, 1), (1, 2)):
            ends = max(one["passes"][earlier]["began"] for one in found)
            self.assertLess(ends, min(one["passes"][later]["began"] for one in found))

    def test_a_row_that_takes_longer_than_the_limit_is_sampled_in_as_many_passes_as_it_needs(self):
        _, answer, _ = answer_of(self.ROWS, sampling={"samples": 12, "passes": 6, "time_limit": 1e-9, "fewest": 3})
        for row in answer["rows"]:
            found = row["outcome"]["measured"]
            self.assertEqual([one["samples"] for one in found["passes"]], [1, 1, 1])
            self.assertEqual(found["stopped_by"], "time-limit")

    def test_a_failure_in_a_later_pass_leaves_what_was_measured(self):
        gpu, made = standin.Gpu(), []
        plain = run_module.Run.cases

        def cases(run, group, number):
            made.append(number)
            if number == 1 and made.count(1) == 1:
                raise RuntimeError("out of memory")
            return plain(run, group, number)

        with unittest.mock.patch.object(run_module.Run, "cases", cases):
            code, answer, said = answer_of(self.ROWS, gpu=gpu, sampling=self.SAMPLING)
        self.assertIn("out of memory", said)
        found = sorted((len(row["outcome"]["measured"]["samples"]), row["outcome"]["measured"]["stopped_by"])
                       for row in answer["rows"])
        self.assertEqual(found, [(3, "failure"), (7, "samples"), (7, "samples")])

    def test_a_device_that_is_lost_in_a_later_pass_leaves_what_was_measured(self):
        gpu = standin.Gpu()
        plain = run_module.Run.cases

        def cases(run, group, number):
            if number == 1:
                gpu.broken = "CUDA error: an illegal memory access was encountered"
                raise RuntimeError(gpu.broken)
            return plain(run, group, number)

        with unittest.mock.patch.object(run_module.Run, "cases", cases):
            code, answer, _ = answer_of(self.ROWS, gpu=gpu, sampling=self.SAMPLING)
        self.assertEqual(code, 1)
        found = [(len(row["outcome"]["measured"]["samples"]), row["outcome"]["measured"]["stopped_by"])
                 for row in answer["rows"]]
        self.assertEqual(found, [(3, "failure")] * 3)


class Order(unittest.TestCase):
    def test_the_order_of_groups_is_that_of_the_seed(self):
        rows = [plans.row("synchronize.same.a", {"size": size}) for size in range(2, 12)]

        def order(seed):
            _, answer, _ = answer_of(rows, sampling={"seed": seed})
            starts = [(row["outcome"]["measured"]["started"][0], row["parameters"]["size"]) for row in answer["rows"]]
            return [size for _, size in sorted(starts)]

        self.assertEqual(order(1), order(1))
        self.assertNotEqual(order(1), order(2))

    def test_without_a_file_to_write_the_answer_is_printed(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(plans.plan([LOOP]), file)
            file.flush()
            printed = io.StringIO()
            with standin.installed(standin.Gpu()), contextlib.redirect_stdout(printed), \
                    contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(pytorch.main(["--plan", file.name]), 0)
        self.assertTrue(outcomes(json.loads(printed.getvalue()), LOOP["id"]))


if __name__ == "__main__":
    unittest.main()
