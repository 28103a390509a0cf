// Copies bytes from wherever they lie to wherever they go: memory of the device, or of the host as the device sees it.
#include "types.cuh"

// The threads of the grid take the packs of 16 bytes in turn, so that enough of them are under way to fill a link. What
// does not fill a pack is copied byte by byte. Both sides are aligned to 16 bytes.
extern "C" __global__ void __launch_bounds__(256) transfer(const uint4 *from, uint4 *to, u64 bytes) {
    wait_for_previous();
    const u64 packs = bytes / 16;
    for (u64 p = thread_number(); p < packs; p += thread_count()) to[p] = from[p];
    const u8 *rest = reinterpret_cast<const u8 *>(from);
    for (u64 i = 16 * packs + thread_number(); i < bytes; i += thread_count()) reinterpret_cast<u8 *>(to)[i] = rest[i];
}

// As `operations.rs` has them.
constexpr u32 MAX_COPIES = 8;

struct Copies {
    u64 from[MAX_COPIES];
    u64 to[MAX_COPIES];
};

// So many copies at once, each of so many bytes: a warp moves a piece.
extern "C" __global__ void __launch_bounds__(256) copies(const Copies each, u64 count, u64 bytes) {
    const u64 pieces = (bytes + PIECE - 1) / PIECE;
    wait_for_previous();
    const u64 warp = thread_number() / 32, copy = warp / pieces, begin = (warp - copy * pieces) * PIECE;
    if (copy >= count) return;
    u64 from = 0, to = 0;
    // By constant indices: for any other the compiler has each thread copy the whole table first.
#pragma unroll
    for (u32 i = 0; i < MAX_COPIES; ++i)
        if (i == copy) from = each.from[i], to = each.to[i];
    move<u8>((const void *)(from + begin), (void *)(to + begin), bytes - begin < PIECE ? bytes - begin : PIECE, true, from | to | bytes);
}
