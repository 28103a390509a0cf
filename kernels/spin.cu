// Keeps a stream busy for a set time.
//
// By the global timer, not by clock cycles: the time holds whatever the clock rate is. One thread, so that the rest of
// the device stays free. The timer advances in steps (1 us or less on current devices): the time is that exact.
//
// The only kernel of its file: the driver's calls about a module that has just been loaded are measured with it.
#include "types.cuh"

extern "C" __global__ void spin(u64 nanoseconds) {
    wait_for_previous();
    spin_for(nanoseconds);
}
