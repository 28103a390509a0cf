"""Reads a plan: which rows to measure, with which parameters, and how to sample them."""

import json
import math
from dataclasses import dataclass, replace

SCHEMA_VERSION = 1
SAMPLING = {"warmup", "samples", "time_limit", "fewest", "passes", "seed"}
# The fewest rounds that a time limit leaves, where the plan does not say: the interval that is published lies between runs.
MINIMUM = 3


class PlanError(Exception):
    """The plan cannot be read, or asks for something that this program does not know."""


@dataclass(frozen=True)
class Sampling:
    """Rounds that are not kept, the rules that end the others, and the seed of every order."""

    warmup: int
    samples: int | None
    time_limit: float | None
    seed: int
    # The fewest rounds that a time limit leaves.
    fewest: int | None = None
    # In how many passes a run goes through its groups, each of which takes a share of the samples.
    passes: int = 1

    def of_pass(self, number):
        """The sampling of one pass, from 0. What a first warm-up loads is loaded later on."""

        def share(count):
            return max(1, count // self.passes + (number < count % self.passes))

        if self.passes == 1:
            return self
        return replace(
            self,
            warmup=self.warmup if number == 0 else min(1, self.warmup),
            samples=self.samples and share(self.samples),
            time_limit=self.time_limit and self.time_limit / self.passes,
            fewest=1,
            passes=1)

    def is_enough(self, samples, spent):
        """Whether a row has the fewest samples that the time limit leaves, and has spent its time."""
        return self.time_limit is not None and spent >= self.time_limit and samples >= (self.fewest or MINIMUM)


@dataclass(frozen=True)
class Row:
    """A row of the plan. `clock` is None where the row is computed from others, which whoever reads the answer does."""

    id: str
    group: str
    unit: str
    parameters: dict
    clock: str | None
    iterations: int

    @property
    def key(self):
        return self.id, parameters_key(self.parameters)

    @property
    def title(self):
        words = ", ".join(f"{name} {value}" for name, value in sorted(self.parameters.items()))
        return f"{self.id} ({words})" if words else self.id


@dataclass(frozen=True)
class Plan:
    sampling: Sampling
    device: int
    rows: list


def parameters_key(parameters):
    """The same for equal parameters, whatever their order; 2 and 2.0 are equal."""
    return frozenset(parameters.items())


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return parse(json.load(file, parse_constant=_no_constant))
    except OSError as error:
        raise PlanError(f"{path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        raise PlanError(f"{path} is not a plan in JSON: {error}") from error
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from error


def parse(plan):
    if not isinstance(plan, dict):
        raise PlanError("a plan is an object with `schema_version`, `sampling`, `device` and `rows`")
    version = plan.get("schema_version")
    if version != SCHEMA_VERSION:
        raise PlanError(f"its schema version is {version}; this program reads {SCHEMA_VERSION}")
    rows = [_row(row, place) for place, row in enumerate(_list(plan, "rows"))]
    seen = set()
    for row in rows:
        if row.key in seen:
            raise PlanError(f"`{row.title}` stands there twice")
        seen.add(row.key)
    return Plan(_sampling(plan.get("sampling")), _device(plan.get("device")), rows)


def _sampling(given):
    if not isinstance(given, dict):
        raise PlanError("`sampling` is missing or no object")
    unknown = sorted(set(given) - SAMPLING)
    if unknown:
        raise PlanError(f"`sampling` has the rule `{unknown[0]}`; this program knows {', '.join(sorted(SAMPLING))}")
    samples, limit = given.get("samples"), given.get("time_limit")
    if samples is None and limit is None:
        raise PlanError("`sampling` never stops: state `samples` or `time_limit`")
    if samples is not None:
        _count(samples, "sampling.samples", least=1)
    if limit is not None and not (_number(limit) and limit > 0):
        raise PlanError(f"`sampling.time_limit` is {limit}; it is a number of seconds greater than 0")
    fewest = given.get("fewest")
    if fewest is not None:
        _count(fewest, "sampling.fewest", least=1)
    passes = _count(given.get("passes", 1), "sampling.passes", least=1)
    if samples is not None and passes > samples:
        raise PlanError(f"`sampling.passes` is {passes}, more than the {samples} samples that they are to share")
    warmup = _count(given.get("warmup", 2), "sampling.warmup")
    return Sampling(warmup, samples, limit, _count(given.get("seed", 0), "sampling.seed"), fewest, passes)


def _device(name):
    kind, _, number = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind != "cuda" or not number.isascii() or not number.isdigit():
        raise PlanError(f"`device` is {name!r}; PyTorch's rows need an NVIDIA GPU, such as cuda:0")
    return int(number)


def _row(row, place):
    where = f"`rows[{place}]`"
    if not isinstance(row, dict):
        raise PlanError(f"{where} is no object")
    for name in ("id", "group", "unit"):
        if not isinstance(row.get(name), str):
            raise PlanError(f"{where} has no text `{name}`")
    parameters = row.get("parameters", {})
    if not isinstance(parameters, dict):
        raise PlanError(f"{where}: `parameters` is no object")
    for name, value in parameters.items():
        if not (isinstance(value, str) or _number(value)):
            raise PlanError(f"{where}: the parameter `{name}` is neither a number nor a text")
    provenance = row.get("provenance")
    if isinstance(provenance, dict) and isinstance(provenance.get("measured"), dict):
        measured = provenance["measured"]
        clock, iterations = measured.get("clock"), measured.get("iterations", 1)
        if not isinstance(clock, str):
            raise PlanError(f"{where} names no clock")
        _count(iterations, f"rows[{place}].iterations", least=1)
    elif isinstance(provenance, dict) and "derived" in provenance:
        clock, iterations = None, 1
    else:
        raise PlanError(f"{where}: `provenance` is neither `measured` nor `derived`")
    return Row(row["id"], row["group"], row["unit"], parameters, clock, iterations)


def _list(plan, name):
    if not isinstance(plan.get(name), list):
        raise PlanError(f"`{name}` is missing or no list")
    return plan[name]


def _number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _count(value, name, least=0):
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise PlanError(f"`{name}` is {value!r}; it is a whole number from {least} on")
    return value


def _no_constant(text):
    raise ValueError(f"{text} is not a number of JSON")
