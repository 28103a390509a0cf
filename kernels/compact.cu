// The positions of the elements that are not zero, ascending, in one pass over the data.
//
// Decoupled look-back (D. Merrill, M. Garland, *Single-pass parallel prefix scan with decoupled look-back*, NVIDIA
// NVR-2016-002): a block takes a tile, counts its non-zeros, publishes the count, and learns what lies before the
// tile by summing its predecessors' words from the nearest on: counts, until one holds the sum of all before. The
// positions of a tile are gathered in shared memory, so that they are written 16 bytes at a time.
//
// `words[0]` is the ticket counter, `words[1]` counts the blocks that have looked back, and `words[2 + t]` is the word
// of tile `t`: 2 bits of state over 62 bits of count. A word is written and read whole, and nothing else is handed over,
// so that no fence is needed. Tickets follow the order in which blocks start: every predecessor of a running block
// has started, and the wait for it ends. All words are zero before the launch; the block that looks back last makes
// them zero again. They belong to one stream, whose kernels follow one another.
#include "types.cuh"

// A tile is as large as it is, and a block as small, so that the tiles of some ten million elements are all under way at
// once: the count is then known before the positions are written.
constexpr u32 THREADS = 128;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 ITEMS = 64; // elements a thread
constexpr u32 TILE = THREADS * ITEMS;

constexpr u64 COUNTED = 1ull << 62; // the tile's own count
constexpr u64 SUMMED = 2ull << 62;  // the count of the tile and all before it
constexpr u64 COUNT = COUNTED - 1;

// So many groups of 32 predecessors are read at once: the way back is a chain of reads.
constexpr u32 GROUPS = 8;

__device__ __forceinline__ u64 warp_sum(u64 x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

// The sum over the lanes before this one; `total` is that over all.
__device__ __forceinline__ u32 lanes_before(u32 x, u32 &total) {
    const u32 lane = threadIdx.x % 32;
    u32 sum = x;
#pragma unroll
    for (u32 step = 1; step < 32; step *= 2) {
        const u32 other = __shfl_up_sync(0xffffffffu, sum, step);
        if (lane >= step) sum += other;
    }
    total = __shfl_sync(0xffffffffu, sum, 31);
    return sum - x;
}

// What lies before `tile`; by one whole warp. Lane `l` reads the word of the predecessor `l + 1` tiles back, and those
// 32, 64, ... further.
__device__ __forceinline__ u64 look_back(const volatile u64 *words, u64 tile) {
    u64 before = 0;
    for (i64 nearest = (i64)tile - 1 - (i64)(threadIdx.x % 32);; nearest -= 32 * GROUPS) {
        u64 read[GROUPS];
#pragma unroll
        for (u32 g = 0; g < GROUPS; ++g) {
            const i64 at = nearest - 32 * (i64)g;
            read[g] = at >= 0 ? words[at] : SUMMED;
        }
#pragma unroll
        for (u32 g = 0; g < GROUPS; ++g) {
            while (__any_sync(0xffffffffu, read[g] < COUNTED))
                if (read[g] < COUNTED) read[g] = words[nearest - 32 * (i64)g];
            const u32 summed = __ballot_sync(0xffffffffu, read[g] >= SUMMED);
            const u32 last = summed == 0 ? 31 : __ffs(summed) - 1;
            before += warp_sum(threadIdx.x % 32 <= last ? read[g] & COUNT : 0);
            if (summed != 0) return before;
        }
    }
}

template <typename T>
__device__ __forceinline__ void nonzero(const T *x, i64 *positions, i64 *count, u64 n, u64 *words) {
    constexpr u32 N = Elements<T>::a_pack;
    constexpr u32 PACKS = ITEMS / N; // a thread
    __shared__ u64 tile_of_block, before_tile;
    __shared__ u32 in_warp[WARPS];
    __shared__ bool last;
    __shared__ u16 found[TILE]; // positions within the tile
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const bool aligned = is_aligned(x, 16);

    wait_for_previous();
    if (threadIdx.x == 0) tile_of_block = atomicAdd(words, 1ull);
    __syncthreads();
    const u64 tile = tile_of_block, start = tile * TILE;

    // A warp owns a run of the tile and goes through it 32 neighbouring packs at a time. Bit `k * N + j` of the mask is
    // element `j` of the thread's pack `k`.
    const u32 first = warp * (32 * ITEMS) + lane * N;
    u64 mask = 0;
#pragma unroll
    for (u32 k = 0; k < PACKS; ++k) {
        const u64 at = start + first + k * (32 * N);
        if (at + N <= n) {
            const Pack<T> pack = load_pack_once<T>(x, at / N, aligned);
#pragma unroll
            for (u32 j = 0; j < N; ++j) mask |= (u64)is_nonzero(pack.lane[j]) << (k * N + j);
        } else {
#pragma unroll
            for (u32 j = 0; j < N; ++j)
                if (at + j < n) mask |= (u64)is_nonzero(x[at + j]) << (k * N + j);
        }
    }
    u32 before_pack[PACKS], in_run = 0;
#pragma unroll
    for (u32 k = 0; k < PACKS; ++k) {
        u32 in_packs;
        before_pack[k] = in_run + lanes_before(__popc((u32)(mask >> (k * N)) & ((1u << N) - 1u)), in_packs);
        in_run += in_packs;
    }
    if (lane == 0) in_warp[warp] = in_run;
    __syncthreads();

    u32 before_warp = 0, total = 0;
#pragma unroll
    for (u32 w = 0; w < WARPS; ++w) {
        before_warp += w < warp ? in_warp[w] : 0;
        total += in_warp[w];
    }
#pragma unroll
    for (u32 k = 0; k < PACKS; ++k) {
        u32 to = before_warp + before_pack[k];
#pragma unroll
        for (u32 j = 0; j < N; ++j)
            if (mask >> (k * N + j) & 1ull) found[to++] = (u16)(first + k * (32 * N) + j);
    }

    if (warp == 0) {
        volatile u64 *own = words + 2 + tile;
        u64 before = 0;
        if (tile > 0) {
            if (lane == 0) *own = COUNTED | total;
            __syncwarp();
            before = look_back(words + 2, tile);
        }
        if (lane == 0) {
            *own = SUMMED | (before + total);
            before_tile = before;
            if (start + TILE >= n) {
                // The host may wait for it, and for nothing else: it is to go out now.
                *reinterpret_cast<volatile i64 *>(count) = (i64)(before + total);
                __threadfence_system();
            }
            __threadfence();
            last = atomicAdd(words + 1, 1ull) == gridDim.x - 1;
            __threadfence();
        }
    }
    __syncthreads();
    if (last)
        for (u64 w = threadIdx.x; w < 2 + (u64)gridDim.x; w += THREADS) words[w] = 0;

    // In pairs, from the first position that is aligned to 16 bytes on.
    i64 *to = positions + before_tile;
    const u32 odd = is_aligned(to, 16) || total == 0 ? 0 : 1, pairs = (total - odd) / 2;
    for (u32 i = threadIdx.x; i < pairs; i += THREADS) {
        Pack<i64> pair;
        pair.lane[0] = (i64)(start + found[odd + 2 * i]);
        pair.lane[1] = (i64)(start + found[odd + 2 * i + 1]);
        reinterpret_cast<Pack<i64> *>(to + odd)[i] = pair;
    }
    if (threadIdx.x == 0 && odd != 0) to[0] = (i64)(start + found[0]);
    if (threadIdx.x == 1 && odd + 2 * pairs < total) to[total - 1] = (i64)(start + found[total - 1]);
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
