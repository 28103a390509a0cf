"""Measures the rows of a plan in one process: in each pass all groups in a random order, recorded groups last."""

import gc
import random
import sys
import time
from dataclasses import replace

from . import answer as outcomes
from . import affinity, catalogue, sampling
from .catalogue import LeftOut, NotApplicable, Skipped, attempt
from .host import Host
from .lab import RecordedCase
from .recording import NotRecorded, Recorder
from .sampling import Interrupted, one_line

NOT_REACHED = "the run was interrupted before this row was reached"

# After how many seconds the answer is kept again.
OFTEN = 2.0


class DeviceLost(Exception):
    """An error of CUDA that stays: no call works any more in this process."""


class Run:
    """`interrupted` says whether to stop, and `keep` is called at the end, and before that every few seconds."""

    def __init__(self, plan, lab, answer, interrupted, keep):
        self.plan, self.lab, self.answer = plan, lab, answer
        self.interrupted, self.keep = interrupted, keep
        self.random = random.Random(plan.sampling.seed)
        self.recorder = Recorder(lab.torch)
        self.host, self.kept = None, float("-inf")

    def measure(self):
        """Raises `DeviceLost` where an error ended the run; all that was measured is in the answer."""
        with affinity.kept():
            # Where the thread has no processor of its own, what computes beside it is part of the run.
            self.host = Host() if affinity.has_own() else None
            self._measure()

    def _measure(self):
        groups, refused = catalogue.divide(self.plan.rows)
        rounds = self.in_order(groups)
        rows = {row.key: row for row in self.plan.rows}
        for key, reason in refused.items():
            self.answer.put(rows[key], outcomes.failed(reason))
        self.put_all((row for group in groups for row in group.rows), outcomes.skipped(NOT_REACHED))
        self.begun = time.perf_counter()
        # No collection falls into a sample, and those between groups leave out what PyTorch itself is made of.
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            for place, (number, group) in enumerate(rounds):
                if self.interrupted():
                    break
                self.keep_now_and_then()
                try:
                    self.measure_group(group, number)
                except DeviceLost as error:
                    self.give_up(rounds[place + 1:], f"the device could not be used any more: {error}")
                    raise
        finally:
            gc.enable()
            gc.unfreeze()
            self.cut_short()
            self.keep()

    def keep_now_and_then(self):
        """Writing the answer takes longer than many a group."""
        now = time.perf_counter()
        if now - self.kept >= OFTEN:
            self.keep()
            self.kept = now

    def in_order(self, groups):
        """The groups, each with the number of its pass. The order in a pass is drawn from the seed; recorded groups come last,
        once."""
        first = [group for group in groups if not group.recipe.recorded]
        last = [group for group in groups if group.recipe.recorded]
        order = []
        for number in range(self.plan.sampling.passes):
            self.random.shuffle(first)
            order += [(number, group) for group in first]
        self.random.shuffle(last)
        return order + [(0, group) for group in last]

    def measure_group(self, group, number):
        print(group.title, file=sys.stderr, flush=True)
        try:
            self.clear(number)
            cases = self.cases(group, number)
            if cases and group.recipe.recorded:
                found = self.sample_recorded(cases)
            else:
                found = self.sample(cases, group.recipe, number) if cases else []
            for row, outcome in found:
                self.answer.add(row, outcome)
        except Interrupted:
            pass
        except Exception as error:
            reason = one_line(error)
            print(f"  failed: {reason}", file=sys.stderr, flush=True)
            self.give_up([(number, group)], reason)
            self.check_device(reason)

    def is_due(self, row, number):
        """Whether a pass is to measure a row."""
        if number == 0:
            return self.answer.outcome(row.key) == outcomes.skipped(NOT_REACHED)
        return self.answer.passes(row.key, self.plan.sampling) == number

    def give_up(self, rounds, reason):
        """The rows that these rounds were to measure have failed."""
        for number, group in rounds:
            for row in group.rows:
                if self.is_due(row, number):
                    self.answer.add(row, outcomes.failed(reason))

    def cut_short(self):
        """Rows of which a pass is missing were interrupted."""
        for key, outcome in self.answer.outcomes.items():
            passes = self.answer.passes(key, self.plan.sampling)
            if passes is not None and passes < self.plan.sampling.passes:
                outcome["measured"]["stopped_by"] = "interrupt"

    def clear(self, number):
        """What an earlier group left behind is gone before the next begins. In later passes its memory stays reserved, as the
        next one's own does after a warm-up."""
        gc.collect()
        self.lab.synchronize()
        if number == 0:
            self.lab.torch.cuda.empty_cache()

    def cases(self, group, number):
        """The rows of the group that can be measured, each with its case; the others get their outcome in the first pass."""
        cases = []
        for wanted in group.wanted():
            try:
                made = group.recipe.make(self.lab, wanted)
            except (NotApplicable, Skipped, LeftOut) as absent:
                made = dict.fromkeys((row.id for row in wanted.rows), absent)
            for row in wanted.rows:
                if number > 0 and not self.is_due(row, number):
                    continue
                case = made.get(row.id, LeftOut())
                if isinstance(case, LeftOut):
                    self.answer.outcomes.pop(row.key, None)
                elif isinstance(case, NotApplicable):
                    self.answer.add(row, outcomes.not_applicable(str(case)))
                elif isinstance(case, Skipped):
                    self.answer.add(row, outcomes.skipped(str(case)))
                elif isinstance(case, Exception):
                    self.answer.add(row, outcomes.failed(one_line(case)))
                else:
                    cases.append((row, case))
        return cases

    def sample(self, cases, recipe, number):
        rules = self.plan.sampling.of_pass(number)
        if not recipe.warmup:
            rules = replace(rules, warmup=0)
        samples = self.rounds([(row.title, case.measure) for row, case in cases], rules)
        began = min(started[0] for started in samples.started)
        window = len(cases), began, time.perf_counter() - self.begun
        kept = zip(cases, samples.values, samples.order, samples.started, samples.slowdown, samples.warmup)
        return [(row, outcomes.measured(*found, samples.stopped_by, window)) for (row, _), *found in kept]

    def sample_recorded(self, cases):
        """Samples in a session of the profiler; the samples are what it recorded. Cases that need no record stay as they are."""

        def acting(case):
            return lambda: self.recorder.act(case)

        def recorded(case):
            return isinstance(case, RecordedCase)

        with self.recorder.session() as session:
            called = [(row.title, acting(case) if recorded(case) else case.measure) for row, case in cases]
            # What a case returns is the number of its trial, which rises.
            samples = self.rounds(called, self.plan.sampling, until_steady=False)
        trials = attempt(lambda: self.recorder.trials(session))
        result = []
        for (row, case), values, order, started, slowdown, warmup in zip(
                cases, samples.values, samples.order, samples.started, samples.slowdown, samples.warmup):
            try:
                if recorded(case):
                    # Only the trials that are kept have to be in the record.
                    values, warmup = [float(case.judge(_trial(trials, number))) for number in values], []
                result.append((row, outcomes.measured(values, order, started, slowdown, warmup, samples.stopped_by)))
            except NotRecorded as error:
                result.append((row, outcomes.failed(str(error))))
        return result

    def rounds(self, cases, rules, until_steady=True):
        return sampling.sample(
            cases, rules, self.random, self.lab.synchronize, self.interrupted, self.begun, host=self.host,
            until_steady=until_steady)

    def check_device(self, reason):
        """Raises where the error stays."""
        try:
            self.lab.synchronize()
            self.lab.torch.zeros(1, device=self.lab.device).item()
        except Exception as error:
            raise DeviceLost(reason) from error

    def put_all(self, rows, outcome):
        for row in rows:
            self.answer.put(row, outcome)


def _trial(trials, number):
    if isinstance(trials, Exception):
        raise NotRecorded(one_line(trials))
    trial = trials.get(int(number))
    if trial is None:
        raise NotRecorded("the profiler recorded no such trial")
    return trial
