"""Plans for tests: every row that a function measures, with small parameters."""

import itertools

from pytorch_system import catalogue, experiments  # noqa: F401
from pytorch_system.experiments import pytorch_calls

# The values of each parameter, the first of which is taken where rows need no others.
VALUES = {
    "size": [8], "iters": [3], "elements": [64], "steps": [4], "chain": [2], "branch": ["small"], "element": [0, 1],
    "adds": [2], "scales": [2], "calls": [3], "operations": [1, 2], "every": [1, 2, 4], "samples": [2], "behind": [8],
    "iterations": [2], "bytes": [40, 256], "by": ["copy", "kernel"], "dtype": ["fp16", "bf16", "fp32"], "model": ["small"],
    "memory": ["pageable", "pinned", "write-combined"], "mode": ["blocking", "non-blocking"], "buffers": [1, 2],
    "origin": ["pageable", "pinned"], "kernel_ratio": [0.1, 10], "kernel_seconds": [5e-6, 1e-3], "spin_seconds": [0, 1e-3],
    "busy_seconds": [1e-3], "event_seconds": [0.002], "stream_seconds": [0.004], "device_seconds": [0.008],
    "device": ["same", "other"], "call": list(pytorch_calls.CALLS), "kernel": ["saxpy 4096", "sum 4096", "transpose 64", "matmul 64"], "launches": [3], "nodes": [1, 10], "library": ["NumPy, fp64", "PyTorch on the CPU, fp32", "another library"],
}


def names(recipe_id, parameters):
    """Which parameters the rows of an identifier have: a list for each kind of row."""
    if recipe_id.startswith("overlap.implicit."):
        call = recipe_id.split(".")[2]
        beside = ["mode"] if call.startswith("from-") else ["origin"] if call == "copy" else []
        return [["bytes", "busy_seconds", *beside]]
    if recipe_id.startswith("async-frontend.model."):
        return [["size", "operations"] if recipe_id.endswith(("queued", "serial")) else ["size"]]
    if recipe_id.startswith("overlap.sweep."):
        return [["elements", "steps", "kernel_ratio"]]
    return [sorted(parameters)]


def row(name, parameters, clock="host", iterations=1):
    measured = {"clock": clock, "iterations": iterations}
    return {"id": name, "group": "G", "label": name, "unit": "seconds", "parameters": parameters,
            "provenance": {"measured": measured}}


def computed(name, parameters):
    provenance = {"derived": {"derivation": "computation", "formula": "f"}}
    return {**row(name, parameters), "provenance": provenance}


def every_row():
    rows = []
    for name, recipe in catalogue.RECIPES.items():
        for needed in names(name, recipe.parameters):
            for values in itertools.product(*(VALUES[parameter] for parameter in needed)):
                rows.append(row(name, dict(zip(needed, values))))
    return rows


def plan(rows, **changes):
    sampling = {"warmup": 1, "samples": 2, "time_limit": 5, "seed": 3, **changes.pop("sampling", {})}
    return {"schema_version": 1, "sampling": sampling, "device": "cuda:0", "rows": rows, **changes}
