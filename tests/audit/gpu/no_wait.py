"""Holds no-wait tests to what they promise, beside PyTorch's debug mode and vLLM's check: calls of PyTorch (`calls.py`), and calls
that PyTorch makes of cuBLAS, cuSOLVER, cuSPARSE, NCCL and CUB. A gate says which of them wait.

    pip install ./python, then: python no_wait.py RESULT.json

Needs PyTorch with CUDA. Prints a table and the share of waiting calls that each check finds, and fails where no-wait tests find
less than 98 %, raise a false alarm, or name a wrong line. Calls whose trials differ count for nothing, and are listed.
"""
import json
import statistics
import sys
import time
import traceback
import warnings

import torch
import torch.distributed as dist
from calls import CALLS, CUDA, Values, line
from gate import Gate

import syncscope

GOAL = 0.98
# What PyTorch says in its debug mode.
SYNCHRONIZES = "called a synchronizing"


class LibraryValues:
    """What the calls of libraries work on."""

    def __init__(self):
        self.m = torch.randn(256, 256, device=CUDA)
        self.half = self.m.half()
        self.batch = torch.randn(8, 64, 64, device=CUDA)
        self.v = torch.randn(256, device=CUDA)
        self.spd = self.m @ self.m.T + 256 * torch.eye(256, device=CUDA)
        self.x = torch.randn(1 << 16, device=CUDA)
        self.i = torch.arange(1024, device=CUDA) // 2
        self.mask = self.x > 0
        self.csr = torch.eye(256, device=CUDA).to_sparse_csr()
        places = torch.arange(256, device=CUDA)
        self.coo = (torch.stack([places, places]), torch.ones(256, device=CUDA))
        self.image = torch.randn(1, 3, 32, 32, device=CUDA)
        self.filter = torch.randn(4, 3, 3, 3, device=CUDA)

    def prepare(self):
        pass

    def pending(self):
        pass


# fmt: off
LIBRARY_CALLS = [
    ("cuBLAS: matmul", lambda v: v.m @ v.m),
    ("cuBLAS: matmul with a bias, half precision", lambda v: torch.addmm(v.half[0], v.half, v.half)),
    ("cuBLAS: batched matmul", lambda v: torch.bmm(v.batch, v.batch)),
    ("cuBLAS: dot", lambda v: torch.dot(v.v, v.v)),
    ("cuBLAS: triangular solve", lambda v: torch.linalg.solve_triangular(v.spd, v.m, upper=True)),
    ("cuSOLVER: cholesky", lambda v: torch.linalg.cholesky(v.spd)),
    ("cuSOLVER: cholesky without a check", lambda v: torch.linalg.cholesky_ex(v.spd)),
    ("cuSOLVER: eigh", lambda v: torch.linalg.eigh(v.spd)),
    ("cuSOLVER: svd", lambda v: torch.linalg.svd(v.m)),
    ("cuSOLVER: inv", lambda v: torch.linalg.inv(v.spd)),
    ("cuSOLVER: solve", lambda v: torch.linalg.solve(v.spd, v.m)),
    ("cuSOLVER: qr", lambda v: torch.linalg.qr(v.m)),
    ("cuSPARSE: sparse matmul", lambda v: v.csr @ v.m),
    ("cuSPARSE: sparse matrix and vector", lambda v: v.csr @ v.v),
    ("cuSPARSE: dense to sparse rows", lambda v: v.m.to_sparse_csr()),
    ("CUB: coalesce", lambda v: torch.sparse_coo_tensor(*v.coo, (256, 256), check_invariants=False).coalesce()),
    ("CUB: sort", lambda v: v.x.sort()),
    ("CUB: cumsum", lambda v: v.x.cumsum(0)),
    ("CUB: nonzero", lambda v: v.mask.nonzero()),
    ("CUB: unique_consecutive", lambda v: torch.unique_consecutive(v.i)),
    ("CUB: randperm", lambda v: torch.randperm(1 << 16, device=CUDA)),
    ("CUB: bincount with a length", lambda v: torch.bincount(v.i, minlength=1024)),
    ("cuFFT: fft", lambda v: torch.fft.fft(v.x)),
    ("cuDNN: convolution", lambda v: torch.nn.functional.conv2d(v.image, v.filter)),
    ("NCCL: all_reduce", lambda v: dist.all_reduce(v.x)),
    ("NCCL: all_reduce, asynchronous", lambda v: dist.all_reduce(v.x, async_op=True)),
    ("NCCL: barrier", lambda v: dist.barrier(device_ids=[0])),
]
# fmt: on
NCCL = "NCCL: "


def by_no_wait(call, values):
    """Whether a block fails; and whether all that it names are lines of the call."""
    try:
        with syncscope.no_wait():
            call(values)
    except syncscope.WaitError as error:
        return True, all(wait.place.line == line(call) for wait in error.waits), str(error)
    return False, True, ""


def by_debug_mode(call, values):
    """PyTorch's check: whether the call raises an error."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        call(values)
    except RuntimeError as error:
        if SYNCHRONIZES not in str(error):
            raise
        return True
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return False


def by_vllm(call, values):
    """vLLM's check (`VLLM_GPU_SYNC_CHECK`): PyTorch's mode `warn`, whose warnings of this thread are caught as they are shown."""
    shown = []

    def show(message, *_):
        shown.append(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        torch.cuda.set_sync_debug_mode("warn")
        try:
            call(values)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return any(SYNCHRONIZES in text for text in shown)


def row(name, call, values, gate, is_library):
    found = {"name": name, "library": is_library}
    try:
        trials = gate.trials(call, values)
        found["waits"] = trials[0] if len(set(trials)) == 1 else None
        for _ in range(2):
            values.prepare()
            values.pending()
            torch.cuda.synchronize()
            flagged, lines_are_right, said = by_no_wait(call, values)
            if found.setdefault("no_wait", flagged) != flagged:
                found["no_wait"] = None
            found.update(lines_are_right=lines_are_right, said=said)
        for check in (by_debug_mode, by_vllm):
            values.prepare()
            values.pending()
            torch.cuda.synchronize()
            found[check.__name__[3:]] = check(call, values)
    except Exception:
        torch.cuda.set_sync_debug_mode("default")
        found["error"] = traceback.format_exc()
    torch.cuda.synchronize()
    return found


def share(check, rows):
    """The share of waiting calls that a check finds, and its false alarms."""
    waiting = [row for row in rows if row["waits"]]
    return {
        "waiting": len(waiting),
        "returning": len(rows) - len(waiting),
        "recall": sum(row[check] is True for row in waiting) / len(waiting) if waiting else None,
        "missed": [row["name"] for row in waiting if row[check] is not True],
        "false_alarms": [row["name"] for row in rows if not row["waits"] and row[check] is not False],
    }


def nanoseconds_a_launch():
    """Of a loop of launches before any block, behind one and within one: medians of rounds by turns, where they can be."""
    x = torch.zeros(16, device=CUDA)

    def round_of_launches(launches=500):
        torch.cuda.synchronize()
        begun = time.perf_counter_ns()
        for _ in range(launches):
            x.add_(1)
        taken = (time.perf_counter_ns() - begun) / launches
        torch.cuda.synchronize()
        return taken

    def within():
        with syncscope.no_wait():
            # Its own end and begin wait, and are not timed.
            torch.cuda.synchronize()  # syncscope: wait ok
            begun = time.perf_counter_ns()
            for _ in range(500):
                x.add_(1)
            taken = (time.perf_counter_ns() - begun) / 500
        torch.cuda.synchronize()
        return taken

    [round_of_launches() for _ in range(20)]
    never = statistics.median(round_of_launches() for _ in range(50))
    [within() for _ in range(5)]
    pairs = [(round_of_launches(), within()) for _ in range(50)]
    closed, opened = (statistics.median(column) for column in zip(*pairs))
    return {"never": never, "closed": closed, "open": opened}


def main():
    torch.cuda.init()
    launch = nanoseconds_a_launch()
    has_nccl = dist.is_available() and dist.is_nccl_available()
    if has_nccl:
        dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1, device_id=torch.device("cuda", 0))
    library = [pair for pair in LIBRARY_CALLS if has_nccl or not pair[0].startswith(NCCL)]
    gate = Gate()
    with torch.cuda.stream(torch.cuda.Stream()):
        values = Values()
        rows = [row(name, call, values, gate, False) for name, call in CALLS]
        values = LibraryValues()
        rows += [row(name, call, values, gate, True) for name, call in library]
    gate.end()
    told = [row for row in rows if "error" not in row and row["waits"] is not None]
    checks = ("no_wait", "debug_mode", "vllm")
    result = {
        "device": torch.cuda.get_device_name(),
        "pytorch": torch.__version__,
        "cuda": torch.version.cuda,
        "nccl": has_nccl,
        "nanoseconds_a_launch": launch,
        "all": {check: share(check, told) for check in checks},
        "libraries": {check: share(check, [row for row in told if row["library"]]) for check in checks},
        "not_counted": [row["name"] for row in rows if row not in told],
        "wrong_lines": [row["name"] for row in told if not row["lines_are_right"]],
        "rows": rows,
    }
    with open(sys.argv[1], "w") as file:
        json.dump(result, file, indent=1)
    words = {True: "waits", False: "-", None: "differs"}
    print(f"{'call':48} {'gate':8} {'no_wait':8} {'debug':8} vLLM")
    for row_ in rows:
        cells = [words[row_.get(key)] for key in ("waits", *checks)]
        print(f"{row_['name']:48} {cells[0]:8} {cells[1]:8} {cells[2]:8} {cells[3]}{'  ERROR' if 'error' in row_ else ''}")
    print(json.dumps({key: value for key, value in result.items() if key != "rows"}, indent=1))
    ours = result["all"]["no_wait"]
    holds = ours["recall"] is not None and ours["recall"] >= GOAL and not ours["false_alarms"]
    holds = holds and not result["wrong_lines"] and not any("error" in row for row in rows)
    if has_nccl:
        dist.destroy_process_group()
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
