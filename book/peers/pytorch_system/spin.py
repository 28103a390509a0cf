"""A kernel that keeps a stream busy for a set time.

By the global timer, not by clock cycles: the time holds whatever the clock rate is. One thread, so that the rest of the
device stays free. The timer advances in steps (1 us or less on current devices): the time is that exact.
"""

import ctypes
import os

from . import nvrtc

NAME = "spin"
SOURCE = """
__device__ __forceinline__ unsigned long long now() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

extern "C" __global__ void spin(unsigned long long nanoseconds) {
    const unsigned long long start = now();
    while (now() - start < nanoseconds) {
    }
}
"""


class Spinner:
    def __init__(self, torch, device, driver):
        major, minor = torch.cuda.get_device_capability(device)
        library = nvrtc.load(nvrtc.candidates(os.path.dirname(torch.__file__)))
        self.driver = driver
        self.image = nvrtc.compile_cubin(library, SOURCE, f"sm_{major}{minor}")
        self.function = driver.load(self.image, NAME)

    def spin(self, stream, seconds):
        """Enqueues a spin on a stream's handle."""
        self.driver.launch(self.function, stream, [ctypes.c_ulonglong(round(seconds * 1e9))])
