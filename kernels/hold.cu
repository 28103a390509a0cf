// Holds a stream until the host has set a flag: what a gate is where the driver has no wait for a word of memory.
//
// One thread, so that the rest of the device stays free. The comparison is around 32 bits, as that of the driver.
#include "types.cuh"

extern "C" __global__ void hold(const volatile u32 *flag, u32 target) {
    wait_for_previous();
    while ((int)(*flag - target) < 0) {
#if __CUDA_ARCH__ >= 700
        asm volatile("nanosleep.u32 1000;");
#endif
    }
    __threadfence_system();
}
