"""The rows that `pytorch.py` produces: the work of each experiment of the book, in PyTorch.

Each function takes a bench and adds the rows of one experiment, with their identifiers and parameters. It creates
random tensors where the experiment creates them, and keeps or drops results as the experiment does.
"""

import importlib.util
import os

# The target of printed tensors. It costs a system call, but not the speed of a terminal.
NOWHERE = open(os.devnull, "w", encoding="utf-8")


def idle_device(bench):
    torch, device, iters = bench.torch, bench.device, bench.plan["idle_iters"]
    parameters = {"size": 100, "iters": iters}

    def looped(wait):
        def region():
            for _ in range(iters):
                a = torch.randn(100, 100, device=device)
                torch.mm(a, a)
                wait()
            bench.synchronize()

        return bench.host_timed(region)

    if torch.cuda.device_count() > 1:
        idle = torch.device("cuda", (device.index + 1) % torch.cuda.device_count())
        bench.group(parameters, lambda: {
            "idle-device.other": looped(lambda: torch.cuda.synchronize(idle)),
            "idle-device.same": looped(bench.synchronize),
        })
    else:
        for name in ("idle-device.other", "idle-device.same"):
            bench.add_row(name, parameters, {"skipped": {"reason": "PyTorch finds one GPU"}})
    busy, other = torch.cuda.current_stream(device), torch.cuda.Stream(device)
    bench.group(parameters, lambda: {
        "idle-device.stream.other": looped(other.synchronize),
        "idle-device.stream.same": looped(busy.synchronize),
    })


def async_frontend(bench):
    torch, device = bench.torch, bench.device

    def loop_work():
        for _ in range(10):
            a = torch.randn(1000, 1000, device=device)
            b = torch.mm(a, a)
        return b

    def complete(launch):
        launch()
        bench.synchronize()

    loop = {"iters": 10, "size": 1000}
    bench.group(loop, lambda: {
        "async-frontend.dispatch": bench.host_timed(loop_work),
        "async-frontend.complete": bench.host_timed(lambda: complete(loop_work)),
    })
    if importlib.util.find_spec("numpy"):
        import numpy

        def host():
            for _ in range(10):
                a = numpy.random.normal(size=(1000, 1000))
                numpy.dot(a, a)

        library = f"NumPy {numpy.__version__}, fp64, its own threads"
        bench.group({**loop, "library": library}, lambda: {"async-frontend.host": bench.host_timed(host)})

    reads = {
        "print": lambda y: print(y[0, 0], file=NOWHERE, flush=True),
        "item": lambda y: y[0, 0].item(),
        "copy": lambda y: y.cpu(),
        "branch": lambda y: bool((y > 0).any()),
    }
    bench.group(loop, lambda: {
        f"async-frontend.barriers.{name}.{state}": bench.read_timed(loop_work, read, state == "ready")
        for name, read in reads.items()
        for state in ("pending", "ready")
    })

    def training(every, x, w):
        losses = []
        for iteration in range(1, 201):
            losses.append(torch.mm(x, w).mean())
            if len(losses) == every or iteration == 200:
                (losses[0] if len(losses) == 1 else torch.stack(losses).mean()).item()
                losses.clear()

    for every in (1, 10, 100, 200):
        x, w = (torch.randn(512, 512, device=device) for _ in range(2))
        bench.group({"every": every, "steps": 200, "size": 512}, lambda: {
            "async-frontend.throughput": bench.host_timed(lambda: training(every, x, w), per=200),
        })

    x, w = (torch.randn(1000, 1000, device=device) for _ in range(2))

    def many(count):
        for _ in range(count):
            torch.mm(x, w)

    bench.group({"size": 1000}, lambda: {
        "async-frontend.model.t1": bench.host_timed(lambda: many(100), per=100),
        "async-frontend.model.t2": bench.device_timed(lambda: many(100), per=100),
        "async-frontend.model.t3": bench.read_timed(lambda: torch.mm(x, w), lambda y: y[0, 0].item(), True),
    }, {"async-frontend.model.t2": "device-events"})
    for count in (1, 2, 5, 10, 20, 50, 100):
        def queued():
            many(count - 1)
            torch.mm(x, w)[0, 0].item()

        def serial():
            for _ in range(count):
                torch.mm(x, w)[0, 0].item()

        bench.group({"size": 1000, "operations": count}, lambda: {
            "async-frontend.model.queued": bench.host_timed(queued),
            "async-frontend.model.serial": bench.host_timed(serial),
        })


def synchronize(bench):
    torch, device, iters = bench.torch, bench.device, bench.plan["loop_iters"]

    def iterate():
        a = torch.randn(1024, 1024, device=device)
        return torch.mm(a, a)

    def looped(each, end):
        def region():
            for _ in range(iters):
                iterate()
                if each:
                    bench.synchronize()
            if end:
                bench.synchronize()

        return bench.host_timed(region)

    bench.group({"size": 1024}, lambda: {
        "synchronize.timing.without": bench.host_timed(iterate),
        "synchronize.timing.with": bench.host_timed(lambda: (iterate(), bench.synchronize())),
        "synchronize.timing.events": bench.device_timed(iterate),
    }, {"synchronize.timing.events": "device-events"})
    bench.group({"size": 1024, "iters": iters}, lambda: {
        "synchronize.loop.each": looped(True, False),
        "synchronize.loop.enqueue": looped(False, False),
        "synchronize.loop.complete": looped(False, True),
    })


def overlap(bench):
    torch, device, draws, elements = bench.torch, bench.device, bench.plan["draws"], 10_000_000

    def random_tensors(place):
        return [torch.randn(draws, device=place) for _ in range(3)]

    library = f"PyTorch on the CPU, fp32, {torch.get_num_threads()} threads"
    bench.group({"elements": draws, "library": library}, lambda: {
        "overlap.execution.host": bench.host_timed(lambda: random_tensors("cpu")),
    })
    bench.group({"elements": draws}, lambda: {
        "overlap.execution.dispatch": bench.host_timed(lambda: random_tensors(device)),
        "overlap.execution.complete": bench.host_timed(lambda: (random_tensors(device), bench.synchronize())),
    })

    def adds():
        x = torch.randn(elements, device=device)
        for _ in range(100):
            x + 1.0

    bench.group({"elements": elements, "adds": 100}, lambda: {
        "overlap.finish.host-free": bench.host_timed(adds),
        "overlap.finish.complete": bench.host_timed(lambda: (adds(), bench.synchronize())),
    })

    x = torch.randn(elements, device=device)

    def scaled():
        z = x
        for _ in range(20):
            z = z * 1.000001
        return z

    bench.group({"elements": elements, "scales": 20}, lambda: {
        "overlap.nonzero.enqueue": bench.host_timed(scaled),
        "overlap.nonzero.stall": bench.read_timed(scaled, torch.nonzero, False),
        "overlap.nonzero.whole": bench.host_timed(lambda: torch.nonzero(scaled())),
        "overlap.nonzero.alone": bench.read_timed(scaled, torch.nonzero, True),
    })
    transfers(bench, x)
    buffers(bench, elements, 10)


def transfers(bench, on_device):
    torch, elements = bench.torch, on_device.numel()
    for memory in ("pageable", "pinned"):
        on_host = torch.ones(elements, pin_memory=memory == "pinned")
        for mode in ("non-blocking", "blocking"):
            parameters = {"memory": memory, "mode": mode, "bytes": 4 * elements}
            for way, target, source in (("h2d", on_device, on_host), ("d2h", on_host, on_device)):
                def copy():
                    target.copy_(source, non_blocking=mode == "non-blocking")

                names = [f"overlap.transfer.{way}.{what}" for what in ("free", "done", "rate")]
                bench.group(parameters, lambda: {
                    names[0]: bench.host_timed(copy),
                    names[1]: bench.host_timed(lambda: (copy(), bench.synchronize())),
                })
                bench.rate(names[2], names[1], parameters, 4 * elements)
    bench.group({"bytes": 4 * elements}, lambda: {
        "overlap.transfer.d2h.new-array": bench.host_timed(on_device.cpu),
    })


def buffers(bench, elements, steps):
    """Copies on one stream, kernels on another; two alternating device buffers, one host buffer per iteration."""
    torch, device = bench.torch, bench.device
    transfer, compute = torch.cuda.Stream(device), torch.cuda.Stream(device)
    host = [torch.full((elements,), float(iteration)).pin_memory() for iteration in range(steps)]
    pair = [torch.zeros(elements, device=device) for _ in range(2)]
    copied, computed = ([torch.cuda.Event() for _ in range(2)] for _ in range(2))
    bench.synchronize()

    def both_ways():
        outputs = []
        for iteration in range(steps):
            own, following = iteration % 2, (iteration + 1) % 2
            if iteration > 0:
                with torch.cuda.stream(compute):
                    compute.wait_event(copied[own])
                    outputs.append(pair[own] * 2.0)
                    computed[own].record(compute)
            if iteration + 1 < steps:
                with torch.cuda.stream(transfer):
                    if iteration > 1:
                        transfer.wait_event(computed[following])
                    pair[following].copy_(host[iteration + 1], non_blocking=True)
                    copied[following].record(transfer)
        bench.synchronize()
        return outputs

    def one_way():
        outputs = []
        for iteration in range(steps):
            own, following = iteration % 2, (iteration + 1) % 2
            if iteration > 0:
                with torch.cuda.stream(compute):
                    outputs.append(pair[own] * 2.0)
            if iteration + 1 < steps:
                with torch.cuda.stream(transfer):
                    pair[following].copy_(host[iteration + 1], non_blocking=True)
                compute.wait_stream(transfer)
        bench.synchronize()
        return outputs

    def copies():
        with torch.cuda.stream(transfer):
            for data in host[1:]:
                pair[0].copy_(data, non_blocking=True)
        bench.synchronize()

    def computes():
        with torch.cuda.stream(compute):
            outputs = [pair[iteration % 2] * 2.0 for iteration in range(1, steps)]
        bench.synchronize()
        return outputs

    pageable = torch.ones(elements)

    def single():
        for _ in range(1, steps):
            pair[0].copy_(pageable)
            pair[0] * 2.0
            bench.synchronize()

    parameters = {"elements": elements, "steps": steps}
    bench.group({**parameters, "memory": "pinned"}, lambda: {
        "overlap.double-buffer.total": bench.host_timed(both_ways),
        "overlap.double-buffer.copies": bench.host_timed(copies),
        "overlap.double-buffer.computes": bench.host_timed(computes),
        "overlap.one-way.total": bench.host_timed(one_way),
    })
    bench.group({**parameters, "memory": "pageable"}, lambda: {
        "overlap.single-buffer.total": bench.host_timed(single),
    })


def launch_path(bench):
    torch, device = bench.torch, bench.device
    iterations = 3
    for operations in (1, 10, 100, 1000):
        x = torch.zeros(1024, device=device)

        def batched():
            for _ in range(operations):
                x.add_(1)

        def one_by_one():
            for _ in range(iterations * operations):
                x.add_(1)
                bench.synchronize()

        def each_iteration(launch):
            def region():
                for _ in range(iterations):
                    launch()
                    bench.synchronize()

            return bench.host_timed(region, iterations)

        batched()
        bench.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            batched()
        bench.group({"operations": operations, "elements": 1024}, lambda: {
            "launch-path.one-by-one.complete": bench.host_timed(one_by_one, iterations),
            "launch-path.batched.host-free": bench.host_timed(batched),
            "launch-path.batched.complete": each_iteration(batched),
            "launch-path.graph.host-free": bench.host_timed(graph.replay),
            "launch-path.graph.complete": each_iteration(graph.replay),
        })


def sync_points(bench):
    torch = bench.torch
    types = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}
    for name, dtype in types.items():
        for kernel, size in (("big", 8192), ("small", 512)):
            matmuls(bench, name, dtype, kernel, size)
        scalar_reads(bench, name, dtype)
    one_type(bench, "fp16", torch.float16)


def operands(bench, size, dtype):
    return [bench.torch.randn(size, size, device=bench.device, dtype=dtype) for _ in range(2)]


def matmuls(bench, name, dtype, kernel, size):
    iters = bench.plan["iters"]
    x, w = operands(bench, size, dtype)

    def looped(forced):
        for _ in range(iters):
            bench.torch.mm(x, w)
            if forced:
                bench.synchronize()

    ids = [f"sync-points.{kernel}.{what}" for what in ("async", "forced")]
    bench.group({"dtype": name, "size": size, "iters": iters}, lambda: {
        ids[0]: bench.device_timed(lambda: looped(False), per=iters),
        ids[1]: bench.device_timed(lambda: looped(True), per=iters),
    }, dict.fromkeys(ids, "device-events"))


def scalar_reads(bench, name, dtype):
    x, w = operands(bench, 8192, dtype)

    def matmul():
        return bench.torch.mm(x, w)[0, 0]

    bench.group({"dtype": name, "size": 8192}, lambda: {
        "sync-points.item.pending": bench.read_timed(matmul, lambda y: y.item(), False),
        "sync-points.print.pending": bench.read_timed(matmul, lambda y: print(y, file=NOWHERE, flush=True), False),
        "sync-points.item.ready": bench.read_timed(matmul, lambda y: y.item(), True),
    })


def one_type(bench, name, dtype):
    """The rows that the suites measure for the first of their element types."""
    torch, device, steps = bench.torch, bench.device, bench.plan["steps"]
    sizes = {"big": operands(bench, 8192, dtype), "small": operands(bench, 512, dtype)}
    (big_x, big_w), (x, w) = sizes["big"], sizes["small"]

    def behind():
        torch.mm(big_x, big_w)
        return torch.mm(x, w)

    rows = torch.tensor([0, 1, 2])
    reads = {
        "copy": lambda y: y.cpu(),
        "any": lambda y: bool((y > 0).any()),
        "index": lambda y: y[rows],
    }
    if importlib.util.find_spec("numpy"):
        reads["array"] = lambda y: y.cpu().numpy()
    bench.group({"dtype": name, "size": 512, "behind": 8192}, lambda: {
        f"sync-points.other.{read}.{state}": bench.read_timed(
            behind if state == "pending" else lambda: torch.mm(x, w), call, state == "ready")
        for read, call in reads.items()
        for state in ("pending", "ready")
    })

    for model, (a, b) in sizes.items():
        def each_step():
            for _ in range(steps):
                torch.mm(a, b).mean().item()

        def accumulated():
            torch.stack([torch.mm(a, b).mean() for _ in range(steps)]).mean().item()

        size = {"dtype": name, "model": model, "size": a.shape[0]}
        bench.group({**size, "steps": steps}, lambda: {
            "sync-points.training-loop.each-step": bench.host_timed(each_step),
            "sync-points.training-loop.accumulated": bench.host_timed(accumulated),
        })

        first, second = torch.cuda.current_stream(device), torch.cuda.Stream(device)
        c, d = operands(bench, a.shape[0], dtype)
        bench.synchronize()

        def two_matmuls(streams):
            made = []
            for stream, (left, right) in zip(streams, ((a, b), (c, d))):
                with torch.cuda.stream(stream):
                    made.append(torch.mm(left, right))
            bench.synchronize()
            return made

        bench.group(size, lambda: {
            "sync-points.multi-stream.one-stream": bench.host_timed(lambda: two_matmuls((first, first))),
            "sync-points.multi-stream.two-streams": bench.host_timed(lambda: two_matmuls((first, second))),
        })

    inputs = [torch.randn(512, dtype=dtype) for _ in range(bench.plan["inputs"])]
    bench.group({"dtype": name, "size": 512, "samples": len(inputs)}, lambda: {
        "sync-points.inference.single": bench.host_timed(
            lambda: [torch.mm(data.to(device).reshape(1, 512), w).cpu() for data in inputs]),
        "sync-points.inference.batch": bench.host_timed(
            lambda: torch.mm(torch.stack(inputs).to(device), w).cpu()),
    })

    def matmul():
        return torch.mm(big_x, big_w)

    bench.group({"dtype": name, "size": 8192}, lambda: {
        "sync-points.timing.wall": bench.host_timed(matmul),
        "sync-points.timing.events": bench.device_timed(matmul),
        "sync-points.timing.complete": bench.host_timed(lambda: (matmul(), bench.synchronize())),
    }, {"sync-points.timing.events": "device-events"})


EXPERIMENTS = (idle_device, async_frontend, synchronize, overlap, sync_points, launch_path)
