"""Whether synchronizing a busy device in each iteration costs more than synchronizing an idle one."""

from ..catalogue import Skipped, produces
from .common import random_matmul, twice


def loop(lab, p, wait):
    def region():
        for _ in range(p["iters"]):
            random_matmul(lab, p["size"])
            wait()
        lab.synchronize()

    return region


def looped(lab, p, wait):
    return lab.host(loop(lab, p, wait))


def idle_gpu(lab):
    """Another GPU, with a context."""
    count = lab.torch.cuda.device_count()
    if count < 2:
        raise Skipped("PyTorch finds one GPU")
    idle = lab.torch.device("cuda", (lab.device.index + 1) % count)
    lab.torch.zeros(1, device=idle)
    lab.torch.cuda.synchronize(idle)
    return idle


@produces("idle-device.other", "idle-device.same", parameters=["size", "iters"])
def two_devices(lab, p):
    idle = idle_gpu(lab)
    return {
        "idle-device.other": looped(lab, p, lambda: lab.torch.cuda.synchronize(idle)),
        "idle-device.same": looped(lab, p, lab.synchronize),
    }


@produces("idle-device.stream.other", "idle-device.stream.same", parameters=["size", "iters"])
def two_streams(lab, p):
    busy, idle = lab.current(), lab.stream()
    return {
        "idle-device.stream.other": looped(lab, p, idle.synchronize),
        "idle-device.stream.same": looped(lab, p, busy.synchronize),
    }


@produces("idle-device.same.a", "idle-device.same.b", parameters=["size", "iters"])
def same(lab, p):
    return twice(lab, "idle-device", loop(lab, p, lab.current().synchronize))
