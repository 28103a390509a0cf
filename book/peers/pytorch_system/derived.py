"""Rows that are computed from measured ones, round by round."""

from dataclasses import dataclass

from . import answer as outcomes
from .plan import parameters_key


@dataclass(frozen=True)
class Formula:
    """`of` are the rows that it is computed from; `without` the parameters of this row that theirs do not have."""

    of: tuple
    compute: object
    without: tuple = ()


def _difference(first, second):
    return Formula((first, second), lambda p, a, b: a - b)


def _rate(time, amount):
    return Formula((time,), lambda p, seconds: amount(p) / seconds)


def _model(total):
    times = tuple(f"async-frontend.model.{time}" for time in ("t1", "t2", "t3"))
    return Formula(times, lambda p, t1, t2, t3: total(p["operations"], t1, t2, t3), ("operations",))


def _judged(compute):
    """From whether a call of PyTorch waits and whether its debug mode warns of it."""
    of = ("pytorch-calls.blocks", "pytorch-calls.warns")
    return Formula(of, lambda p, blocks, warns: float(compute(blocks > 0.5, warns > 0.5)))


_DOUBLE = "overlap.double-buffer."
_ALONE = (f"{_DOUBLE}copies", f"{_DOUBLE}computes")
_SWEPT = ("overlap.sweep.copies", "overlap.sweep.computes")

# Those that measure the same code twice.
EXPERIMENTS = (
    "self-audit", "idle-device", "async-frontend", "synchronize", "overlap", "sync-points", "launch-path", "layers",
    "pytorch-calls", "ceilings")

FORMULAS = {
    "idle-device.delta": _difference("idle-device.same", "idle-device.other"),
    "idle-device.stream.delta": _difference("idle-device.stream.same", "idle-device.stream.other"),
    "async-frontend.model.queued.predicted": _model(lambda n, t1, t2, t3: t1 + n * t2 + t3),
    "async-frontend.model.serial.predicted": _model(lambda n, t1, t2, t3: n * (t1 + t2 + t3)),
    "overlap.double-buffer.sum": Formula(_ALONE, lambda p, copies, computes: copies + computes),
    "overlap.double-buffer.max": Formula(_ALONE, lambda p, copies, computes: max(copies, computes)),
    "overlap.double-buffer.efficiency": Formula(
        (f"{_DOUBLE}total", *_ALONE),
        lambda p, total, copies, computes: (copies + computes - total) / min(copies, computes),
    ),
    "overlap.sweep.sum": Formula(_SWEPT, lambda p, copies, computes: copies + computes),
    "overlap.sweep.max": Formula(_SWEPT, lambda p, copies, computes: max(copies, computes)),
    "overlap.transfer.h2d.rate": _rate("overlap.transfer.h2d.done", lambda p: p["bytes"]),
    "overlap.transfer.d2h.rate": _rate("overlap.transfer.d2h.done", lambda p: p["bytes"]),
    "sync-points.big.delta": _difference("sync-points.big.forced", "sync-points.big.async"),
    "sync-points.small.delta": _difference("sync-points.small.forced", "sync-points.small.async"),
    "sync-points.linear.delta": _difference("sync-points.linear.forced", "sync-points.linear.async"),
    "sync-points.training-loop.each-step.extrapolated": Formula(
        ("sync-points.training-loop.each-step",), lambda p, time: time * 1000 / p["steps"]),
    "sync-points.training-loop.accumulated.extrapolated": Formula(
        ("sync-points.training-loop.accumulated",), lambda p, time: time * 1000 / p["steps"]),
    "launch-path.graph.gain": Formula(
        ("launch-path.batched.complete", "launch-path.graph.complete"), lambda p, batched, graph: batched / graph),
    **{
        f"{name}.same.ratio": Formula((f"{name}.same.a", f"{name}.same.b"), lambda p, first, second: second / first)
        for name in EXPERIMENTS
    },
    "pytorch-calls.agrees": _judged(lambda blocks, warns: blocks == warns),
    "pytorch-calls.missed": _judged(lambda blocks, warns: blocks and not warns),
    "pytorch-calls.false-alarm": _judged(lambda blocks, warns: warns and not blocks),
    "ceilings.copy.rate": _rate("ceilings.copy.time", lambda p: 2 * p["bytes"]),
    "ceilings.matmul.rate": _rate("ceilings.matmul.time", lambda p: 2 * p["size"] ** 3),
    "ceilings.h2d.rate": _rate("ceilings.h2d.time", lambda p: p["bytes"]),
    "ceilings.d2h.rate": _rate("ceilings.d2h.time", lambda p: p["bytes"]),
}


def compute(plan, answer):
    """Puts the computed rows into the answer. What an operand lacks, the row lacks, for the same reason; a row whose
    operands are left out is left out."""
    for row in plan.rows:
        formula = FORMULAS.get(row.id)
        if formula is None or row.clock is not None:
            continue
        parameters = {name: value for name, value in row.parameters.items() if name not in formula.without}
        found = [answer.outcome((name, parameters_key(parameters))) for name in formula.of]
        if any(outcome is None for outcome in found):
            continue
        absent = next((outcome for outcome in found if outcomes.samples_of(outcome) is None), None)
        answer.put(row, absent or _computed(formula, row.parameters, map(outcomes.samples_of, found)))


def _computed(formula, parameters, operands):
    try:
        return outcomes.derived([formula.compute(parameters, *values) for values in zip(*operands)])
    except (ArithmeticError, KeyError) as error:
        return outcomes.failed(f"it cannot be computed: {type(error).__name__} {error}")
