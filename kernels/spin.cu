// Keeps a stream busy for a set time.
//
// By the global timer, not by clock cycles: the time holds whatever the clock rate is. One thread, so that the rest of
// the device stays free. The timer advances in steps (1 us or less on current devices): the time is that exact.
#include "types.cuh"

__device__ __forceinline__ u64 now() {
    u64 ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

extern "C" __global__ void spin(u64 nanoseconds) {
    wait_for_previous();
    const u64 start = now();
    while (now() - start < nanoseconds) {
    }
}

// As spin; then writes a word of host memory, so that the host sees the end of the work by itself.
extern "C" __global__ void spin_and_mark(u64 nanoseconds, volatile u32 *word, u32 value) {
    wait_for_previous();
    const u64 start = now();
    while (now() - start < nanoseconds) {
    }
    *word = value;
    __threadfence_system();
}
