// The positions of the elements that are not zero, ascending, in one pass over the data.
//
// Decoupled look-back (D. Merrill, M. Garland, *Single-pass parallel prefix scan with decoupled look-back*, NVIDIA
// NVR-2016-002): a block takes a tile, counts its non-zeros, publishes the count, and learns what lies before the
// tile by summing its predecessors' words from the nearest on: counts, until one holds the sum of all before.
//
// `words[0]` is the ticket counter and `words[1 + t]` the word of tile `t`: 2 bits of state over 62 bits of count. A
// word is written and read whole, and nothing else is handed over, so that no fence is needed. Tickets follow the
// order in which blocks start: every predecessor of a running block has started, and the wait for it ends. All words
// are zero before the launch.
#include "types.cuh"

constexpr u32 THREADS = 256;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 ITEMS = 16; // elements a thread
constexpr u32 TILE = THREADS * ITEMS;

constexpr u64 COUNTED = 1ull << 62; // the tile's own count
constexpr u64 SUMMED = 2ull << 62;  // the count of the tile and all before it
constexpr u64 COUNT = COUNTED - 1;

__device__ __forceinline__ u64 warp_sum(u64 x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

// What lies before `tile`; by one whole warp. Lane `l` reads the word of the predecessor `l + 1` tiles back.
__device__ __forceinline__ u64 look_back(const volatile u64 *words, u64 tile) {
    u64 before = 0;
    for (i64 at = (i64)tile - 1 - (i64)(threadIdx.x % 32);; at -= 32) {
        u64 word;
        do {
            word = at >= 0 ? words[at] : SUMMED;
        } while (__any_sync(0xffffffffu, word < COUNTED));
        const u32 summed = __ballot_sync(0xffffffffu, word >= SUMMED);
        const u32 nearest = summed == 0 ? 31 : __ffs(summed) - 1;
        before += warp_sum(threadIdx.x % 32 <= nearest ? word & COUNT : 0);
        if (summed != 0) return before;
    }
}

template <typename T>
__device__ __forceinline__ void nonzero(const T *x, i64 *positions, i64 *count, u64 n, u64 *words) {
    __shared__ u64 tile_of_block, before_tile;
    __shared__ u32 in_warp[WARPS];
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    if (threadIdx.x == 0) tile_of_block = atomicAdd(words, 1ull);
    __syncthreads();
    const u64 tile = tile_of_block;

    // A warp owns a run of the tile and goes through it 32 neighbours at a time.
    const u64 start = tile * TILE + (u64)warp * (32 * ITEMS) + lane;
    u32 masks[ITEMS];
    u32 found = 0;
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) {
        const u64 at = start + 32 * j;
        masks[j] = __ballot_sync(0xffffffffu, at < n && is_nonzero(x[at]));
        found += __popc(masks[j]);
    }
    if (lane == 0) in_warp[warp] = found;
    __syncthreads();

    if (warp == 0) {
        u64 total = 0;
#pragma unroll
        for (u32 w = 0; w < WARPS; ++w) total += in_warp[w];
        volatile u64 *own = words + 1 + tile;
        u64 before = 0;
        if (tile > 0) {
            if (lane == 0) *own = COUNTED | total;
            __syncwarp();
            before = look_back(words + 1, tile);
        }
        if (lane == 0) {
            *own = SUMMED | (before + total);
            before_tile = before;
            if ((tile + 1) * TILE >= n) *count = (i64)(before + total);
        }
    }
    __syncthreads();

    u64 to = before_tile;
    for (u32 w = 0; w < warp; ++w) to += in_warp[w];
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) {
        if (masks[j] >> lane & 1u) positions[to + __popc(masks[j] & ((1u << lane) - 1u))] = (i64)(start + 32 * j);
        to += __popc(masks[j]);
    }
}

#define NONZERO(NAME, T)                                                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        nonzero_##NAME(const T *x, i64 *positions, i64 *count, u64 n, u64 *words) {                                    \
        nonzero(x, positions, count, n, words);                                                                        \
    }

NONZERO(fp16, fp16)
NONZERO(bf16, bf16)
NONZERO(fp32, float)
NONZERO(u8, u8)
NONZERO(i64, i64)
