// Copies bytes from wherever they lie to wherever they go: memory of the device, or of the host as the device sees it.
//
// The threads of the grid take the packs of 16 bytes in turn, so that enough of them are under way to fill a link. What
// does not fill a pack is copied byte by byte. Both sides are aligned to 16 bytes.
#include "types.cuh"

extern "C" __global__ void __launch_bounds__(256) transfer(const uint4 *from, uint4 *to, u64 bytes) {
    wait_for_previous();
    const u64 packs = bytes / 16;
    for (u64 p = thread_number(); p < packs; p += thread_count()) to[p] = from[p];
    const u8 *rest = reinterpret_cast<const u8 *>(from);
    for (u64 i = 16 * packs + thread_number(); i < bytes; i += thread_count()) reinterpret_cast<u8 *>(to)[i] = rest[i];
}
