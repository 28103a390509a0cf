// What waits and launches are measured with: work that tells when it ended, the device's clock, and work whose first half
// needs nothing of the kernel before it. One thread each.
#include "types.cuh"

// As spin; then writes a word of host memory, so that the host sees the end of the work by itself, and behind it (8 bytes
// after the word) the time of the global timer just before.
extern "C" __global__ void spin_and_mark(u64 nanoseconds, volatile u32 *word, u32 value) {
    wait_for_previous();
    const u64 end = spin_for(nanoseconds);
    *word = value;
    reinterpret_cast<volatile u64 *>(word)[1] = end;
    __threadfence_system();
}

// Tells the time to the host, which asks by counting the word up from `first`, and finds the answer 8 bytes after it. No two
// answers are equal. The first one, unasked, is the step of the timer. Ends by itself when the host has not asked for `limit`
// nanoseconds.
extern "C" __global__ void tell_time(volatile u32 *word, u32 first, u32 rounds, u64 limit) {
    wait_for_previous();
    volatile u64 *const answer = reinterpret_cast<volatile u64 *>(word) + 1;
    const u64 begun = now();
    u64 change = begun;
    while (change == begun) change = now();
    u64 latest = change;
    while (latest == change) latest = now();
    *answer = latest - change;
    __threadfence_system();
    for (u32 round = 0; round < rounds; ++round) {
        const u64 start = now();
        while ((int)(*word - (first + round)) < 0) {
            if (now() - start > limit) return;
        }
        u64 time = now();
        while (time == latest) time = now();
        latest = time;
        *answer = time;
        __threadfence_system();
    }
}

// As spin, in two halves. By a programmatic launch, the first half runs beside the second half of the kernel before it.
extern "C" __global__ void spin_in_halves(u64 nanoseconds) {
    let_next_start();
    spin_for(nanoseconds / 2);
    wait_for_previous();
    spin_for(nanoseconds / 2);
}
