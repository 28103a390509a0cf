"""The kernels of kernels.cu by PyTorch's way: Triton's do_bench and plain events; one JSON object a line."""
import json
import pathlib

import torch
from triton.testing import do_bench

SOURCE = (pathlib.Path(__file__).parents[2] / "book/peers/pytorch_system/kernels.cu").read_text()


def compiled(name):
    return torch.cuda._compile_kernel(SOURCE, name)


def plain(call, calls=100):
    times = []
    for _ in range(20):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / calls * 1e-3)
    return sorted(times)[len(times) // 2]


def main():
    saxpy, total, transpose, matmul = map(compiled, ("saxpy", "sum", "transpose", "matmul"))
    for n, side, small in zip((1 << 12, 1 << 16, 1 << 20, 1 << 23, 1 << 26), (64, 256, 1024, 2048, 4096), (64, 128, 256, 512, 1024)):
        x, y, out = torch.ones(n, device="cuda"), torch.zeros(n, device="cuda"), torch.zeros(1, device="cuda")
        s, t = torch.ones(side * side, device="cuda"), torch.zeros(side * side, device="cuda")
        a, b, c = (torch.ones(small * small, device="cuda") for _ in range(3))
        blocks = lambda count: (max(1, (count + 255) // 256), 1, 1)
        rows = [
            ("saxpy", n, lambda: saxpy(blocks(n), (256, 1, 1), (0.5, x, y, n))),
            ("sum", n, lambda: total(blocks(min(n // 4, 1 << 18)), (256, 1, 1), (x, out, n))),
            ("transpose", side, lambda: transpose(((side + 31) // 32, (side + 31) // 32, 1), (32, 8, 1), (s, t, side))),
            ("matmul", small, lambda: matmul((small // 16, small // 16, 1), (16, 16, 1), (a, b, c, small))),
        ]
        for name, size, call in rows:
            call()
            torch.cuda.synchronize()
            cold = do_bench(call, warmup=5, rep=20, return_mode="median") * 1e-3
            print(json.dumps({"peer": name, "n": size, "do_bench": cold, "plain": plain(call)}), flush=True)


main()
