"""A regression test for ReFrame 4: the medians of a suite of syncscope as performance variables, held to a results file.

    reframe -c reframe_syncscope.py -r -S suite=full -S baseline=/site/kept.json.gz -S valid_systems='gpu-cluster:gpus'

The baseline is a results file of the same suite on a machine that is well. A median that is worse than its by more than
`tolerance` fails the test: above it for times, below it for rates. Without a baseline all medians are reported, and none
is judged.
"""

import gzip
import json
import os
import statistics

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, sanity_function, variable

# The units in which more is better. Times are the others; what has no better direction is reported only.
RATES = {"bytes-per-second", "flops-per-second"}
TIMES = {"seconds"}


def name_of(spec):
    """The name of a row: its identifier, and its parameters in order."""
    parameters = spec.get("parameters") or {}
    return spec["id"] + "".join(f",{name}={parameters[name]}" for name in sorted(parameters))


def medians(results, system="syncscope"):
    """The median and the unit of each row that was measured, and of each rate: the median of the medians of its runs. What
    is computed otherwise is a difference or a quotient, which scatters by more than a share of itself."""
    runs = {run["id"] for run in results["runs"] if run["system"] == system}
    found = {}
    for row in results["rows"]:
        unit = row["spec"]["unit"]
        kinds = ("measured", "derived") if unit in RATES else ("measured",)
        outcomes = [series["outcome"] for series in row["series"] if series["run"] in runs]
        samples = [outcome[kind]["samples"] for outcome in outcomes for kind in kinds if kind in outcome]
        values = [statistics.median(own) for own in samples if own]
        if values:
            found[name_of(row["spec"])] = (statistics.median(values), unit)
    return found


def references(kept, tolerance):
    """What ReFrame compares with: the value, how far below and above it one may be, and the unit."""
    limits = {}
    for name, (value, unit) in kept.items():
        if value > 0 and unit in TIMES | RATES:
            bounds = (-tolerance, None) if unit in RATES else (None, tolerance)
            limits[name] = (value, *bounds, unit)
    return limits


def read(path):
    """The results in a file, which may be compressed."""
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        return json.load(file)


@rfm.simple_test
class SyncscopeTest(rfm.RunOnlyRegressionTest):
    descr = "Where host and GPU wait for each other"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "report"
    # A suite's name, or a file.
    suite = variable(str, value="quick")
    device = variable(str, value="auto")
    # The results file that is compared with.
    baseline = variable(str, value="")
    # How much worse than the baseline a median may be, as a share.
    tolerance = variable(float, value=0.2)
    num_tasks = 1
    num_gpus_per_node = 1
    # NVLink multicast can disturb a host that others share.
    env_vars = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
    results_file = "results.json"

    @run_after("init")
    def keep_the_results(self):
        self.keep_files = [self.results_file]

    @run_before("run")
    def set_arguments(self):
        # The job's script is a shell's, and each option a word of it.
        options = ["--suite", self.suite, "--device", self.device, "--out", self.results_file]
        self.executable_opts = ["run", *(quoted(option) for option in options)]

    @sanity_function
    def ended(self):
        """All runs are there, and some row was measured."""
        results = read(self.path())
        runs = [run for run in results["runs"] if run["system"] == "syncscope"]
        interrupted = any(run["outcome"] == "interrupted" for run in runs)
        return len(runs) >= results["plan"]["runs"] and not interrupted and bool(medians(results))

    @run_before("performance")
    def set_variables(self):
        # The test runs where ReFrame does, and the stage folder is its own.
        found = medians(read(self.path()))
        self.perf_variables = {
            name: sn.make_performance_function(constant, unit, value) for name, (value, unit) in found.items()
        }
        kept = medians(read(self.baseline)) if self.baseline else {}
        # A row that this run does not have is no reason to fail: another device may have others.
        limits = {name: limit for name, limit in references(kept, self.tolerance).items() if name in found}
        self.reference = {"*": limits}

    def path(self):
        return os.path.join(self.stagedir, self.results_file)


def constant(value):
    return value


def quoted(word):
    return "'" + word.replace("'", "'\\''") + "'"
