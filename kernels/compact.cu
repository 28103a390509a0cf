// The positions of the elements that are not zero, ascending, in two launches that read each element once.
//
// The host waits for the count alone, so the count comes first. `mark_nonzero_*` reads the elements, leaves one bit for each
// and a count for each tile, and tells the host the sum. `positions` then writes the positions from the bits, while the
// host goes on. A single pass with decoupled look-back (D. Merrill, M. Garland, *Single-pass parallel prefix scan with
// decoupled look-back*, NVIDIA NVR-2016-002) moves the same bytes, but it knows the count only when almost all
// positions are written, and these are the larger part: 8 bytes an element.
//
// What lies before a tile is the sum of the groups before its own and of the tiles before it in its group. No block waits
// for another.
//
// `words[0]` holds the number of finished groups above 40 bits of count, and `words[1 + g]` the number of finished tiles of
// group `g` above 32 bits of count. A sum travels in the atomic operation that announces it, so no fence is needed. Who
// finishes a group or the whole sets its word to zero again. The words belong to one stream, whose kernels follow one
// another; they are zero before and after each launch.
#include "types.cuh"

// As `nonzero` on the host knows them, too.
constexpr u32 THREADS = 128;
constexpr u32 TILE = 8192; // elements
constexpr u32 GROUP = 256; // tiles

constexpr u32 WARPS = THREADS / 32;
constexpr u32 ITEMS = TILE / THREADS; // elements a thread: a bit each in 64
constexpr u32 RUN = TILE / WARPS;     // elements a warp
static_assert(ITEMS == 64, "a thread's marks are one word of 64 bits");

constexpr u32 ALL = 0xffffffffu;

template <typename U> __device__ __forceinline__ U warp_sum(U x) {
#pragma unroll
    for (u32 step = 16; step > 0; step /= 2) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

// The sum over the lanes before this one; `total` is that over all.
__device__ __forceinline__ u32 lanes_before(u32 x, u32 &total) {
    const u32 lane = threadIdx.x % 32;
    u32 sum = x;
#pragma unroll
    for (u32 step = 1; step < 32; step *= 2) {
        const u32 other = __shfl_up_sync(ALL, sum, step);
        if (lane >= step) sum += other;
    }
    total = __shfl_sync(ALL, sum, 31);
    return sum - x;
}

// Bit `j` says whether element `j` of the pack is not zero.
template <typename T> __device__ __forceinline__ u32 marks_of(const Pack<T> &pack) {
    u32 marks = 0;
#pragma unroll
    for (u32 j = 0; j < Elements<T>::a_pack; ++j) marks |= (u32)is_nonzero(pack.lane[j]) << j;
    return marks;
}

// Four bytes at a time. The sum sets the highest bit of each byte that is not zero; the product moves these bits side by
// side, and no two of its terms meet in one bit.
__device__ __forceinline__ u32 marks_of(const Pack<u8> &pack) {
    u32 marks = 0;
#pragma unroll
    for (u32 w = 0; w < 4; ++w) {
        const u32 x = reinterpret_cast<const u32 *>(&pack)[w];
        const u32 highest = (((x & 0x7f7f7f7fu) + 0x7f7f7f7fu) | x) & 0x80808080u;
        marks |= ((highest >> 7) * 0x01020408u >> 24 & 15u) << (4 * w);
    }
    return marks;
}

// A thread holds `N` neighbouring elements of each row of `32 * N`; a word of the bit map holds 32 neighbours. Among
// `32 / N` lanes the words are transposed in place, as a matrix of items of `N` bits: lane `l` gets row `l` of what were
// columns.
template <u32 N> __device__ __forceinline__ u32 transposed(u32 word) {
#pragma unroll
    for (u32 distance = 1; distance * N < 32; distance *= 2) {
        const u32 bits = distance * N;
        // The items whose number has no bit `distance`: all ones below `bits`, repeated at each multiple of `2 * bits`.
        const u32 lower = ALL / ((1u << bits) + 1u);
        const u32 other = __shfl_xor_sync(ALL, word, distance);
        const bool upper_lane = (threadIdx.x & distance) != 0;
        word = upper_lane ? (word & ~lower) | ((other & ~lower) >> bits) : (word & lower) | ((other & lower) << bits);
    }
    return word;
}

template <typename T>
__device__ __forceinline__ void mark(const T *x, u64 n, u32 *marks, u32 *counts, u32 *sums, u64 *words, i64 *count) {
    constexpr u32 N = Elements<T>::a_pack;
    constexpr u32 PACKS = ITEMS / N; // a thread
    __shared__ u32 in_warp[WARPS];
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u64 tile = blockIdx.x, start = tile * TILE;
    wait_for_previous();

    // A warp goes through its run 32 neighbouring packs at a time. Bit `k * N + j` is element `j` of the thread's pack `k`.
    const u64 first = start + warp * RUN + lane * N;
    u64 mask = 0;
    if (start + TILE <= n && is_aligned(x, 16)) {
        // All loads before the first use, so that they are under way together.
        Pack<T> packs[PACKS];
#pragma unroll
        for (u32 k = 0; k < PACKS; ++k) packs[k] = load_pack_once<T>(x, first / N + k * 32, true);
#pragma unroll
        for (u32 k = 0; k < PACKS; ++k) mask |= (u64)marks_of(packs[k]) << (k * N);
    } else {
#pragma unroll 4
        for (u32 i = 0; i < ITEMS; ++i) {
            const u64 at = first + i / N * (32 * N) + i % N;
            if (at < n) mask |= (u64)is_nonzero(x[at]) << i;
        }
    }

    const u32 in_lanes = warp_sum((u32)__popcll(mask));
    if (lane == 0) in_warp[warp] = in_lanes;
    u32 *to = marks + tile * (TILE / 32) + warp * (RUN / 32) + lane % (32 / N) * N + lane / (32 / N);
    to[0] = transposed<N>((u32)mask);
    to[32] = transposed<N>((u32)(mask >> 32));
    __syncthreads();
    if (threadIdx.x != 0) return;

    u32 in_tile = 0;
#pragma unroll
    for (u32 w = 0; w < WARPS; ++w) in_tile += in_warp[w];
    counts[tile] = in_tile;
    const u64 tiles = gridDim.x, group = tile / GROUP, groups = (tiles + GROUP - 1) / GROUP;
    const u64 in_group = group + 1 < groups ? GROUP : tiles - group * GROUP;
    const u64 others = atomicAdd(words + 1 + group, (1ull << 32) | in_tile);
    if ((others >> 32) + 1 != in_group) return;

    const u32 of_group = (u32)others + in_tile;
    words[1 + group] = 0;
    sums[group] = of_group;
    const u64 before = atomicAdd(words, (1ull << 40) | of_group);
    if ((before >> 40) + 1 != groups) return;

    words[0] = 0;
    // The host waits for it, and for nothing else: it is to go out now.
    *reinterpret_cast<volatile i64 *>(count) = (i64)((before & ((1ull << 40) - 1)) + of_group);
    __threadfence_system();
}

// Writes the positions of 32 words of the bit map: lane `l` brings word `l` and how many positions lie before it. A word is
// written by the whole warp, to neighbouring places.
__device__ __forceinline__ void write_positions(i64 *to, u32 word, u32 before, i64 first) {
    const u32 lane = threadIdx.x % 32, lanes_below = (1u << lane) - 1u;
    for (u32 left = __ballot_sync(ALL, word != 0); left != 0; left &= left - 1) {
        const u32 w = __ffs(left) - 1;
        const u32 bits = __shfl_sync(ALL, word, w), at = __shfl_sync(ALL, before, w);
        if (bits >> lane & 1u) to[at + __popc(bits & lanes_below)] = first + 32 * w + lane;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    positions(const u32 *marks, const u32 *counts, const u32 *sums, i64 *positions) {
    __shared__ u64 before_in_warp[WARPS];
    __shared__ u32 in_warp[WARPS];
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u64 tile = blockIdx.x, group = tile / GROUP;
    wait_for_previous();

    u64 before = 0;
    for (u64 g = threadIdx.x; g < group; g += THREADS) before += sums[g];
    for (u64 t = group * GROUP + threadIdx.x; t < tile; t += THREADS) before += counts[t];
    const u32 *from = marks + tile * (TILE / 32) + warp * (RUN / 32) + lane;
    const u32 low = from[0], high = from[32];
    u32 in_low, in_high;
    const u32 before_low = lanes_before(__popc(low), in_low);
    const u32 before_high = in_low + lanes_before(__popc(high), in_high);
    before = warp_sum(before);
    if (lane == 0) {
        before_in_warp[warp] = before;
        in_warp[warp] = in_low + in_high;
    }
    __syncthreads();

    before = 0;
#pragma unroll
    for (u32 w = 0; w < WARPS; ++w) before += before_in_warp[w] + (w < warp ? in_warp[w] : 0);
    const i64 first = (i64)(tile * TILE + warp * RUN);
    write_positions(positions + before, low, before_low, first);
    write_positions(positions + before, high, before_high, first + 1024);
}

#define MARK_NONZERO(NAME, T)                                                                                          \
    extern "C" __global__ void __launch_bounds__(THREADS) mark_nonzero_##NAME(                                         \
        const T *x, u64 n, u32 *marks, u32 *counts, u32 *sums, u64 *words, i64 *count) {                               \
        mark(x, n, marks, counts, sums, words, count);                                                                 \
    }

MARK_NONZERO(fp16, fp16)
MARK_NONZERO(bf16, bf16)
MARK_NONZERO(fp32, float)
MARK_NONZERO(u8, u8)
MARK_NONZERO(i64, i64)
