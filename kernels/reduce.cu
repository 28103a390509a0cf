// All elements to one: sum and any.
//
// One launch: every block reduces its share, and the block that finishes last reduces the blocks' results. Which
// elements a thread adds depends on the length and the grid alone, and the tree has one shape, so that a sum repeats
// bit for bit, also at another alignment.
//
// `scratch` belongs to one stream, whose kernels follow one another: word 0 counts finished blocks, word 1 is the
// verdict of `any`, the results of the blocks follow. Both words are zero before and after each launch.
#include "types.cuh"

constexpr u32 THREADS = 256;

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(0xffffffffu, x, step);
    return x;
}

// The sum over the block, in thread 0. Ends with all threads past their last use of `partial`.
__device__ __forceinline__ float block_sum(float x) {
    __shared__ float partial[THREADS / 32];
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x < 32) x = warp_sum(threadIdx.x < THREADS / 32 ? partial[threadIdx.x] : 0.0f);
    __syncthreads();
    return x;
}

// Whether this block is the last to come here. What thread 0 wrote before, the last block's threads see after.
__device__ __forceinline__ bool is_last_block(u32 *counter) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(counter, 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    return last;
}

template <typename T> __device__ __forceinline__ void sum(const T *x, float *out, u64 n, u32 *scratch) {
    constexpr u32 N = Elements<T>::a_pack;
    const bool aligned = is_aligned(x, 16);
    const u64 packs = n / N;
    float total = 0.0f;
    wait_for_previous();
    for (u64 p = thread_number(); p < packs; p += thread_count()) {
        const Pack<T> pack = load_pack<T>(x, p, aligned);
        float part = 0.0f;
#pragma unroll
        for (u32 j = 0; j < N; ++j) part += to_float(pack.lane[j]);
        total += part;
    }
    const u64 rest = packs * N + thread_number();
    if (rest < n) total += to_float(x[rest]);

    volatile float *results = reinterpret_cast<float *>(scratch + 2);
    total = block_sum(total);
    if (threadIdx.x == 0) results[blockIdx.x] = total;
    if (!is_last_block(scratch)) return;
    total = 0.0f;
    for (u32 b = threadIdx.x; b < gridDim.x; b += THREADS) total += results[b];
    total = block_sum(total);
    if (threadIdx.x == 0) {
        *out = total;
        scratch[0] = 0;
    }
}

template <typename T> __device__ __forceinline__ void any(const T *x, u8 *out, u64 n, u32 *scratch) {
    constexpr u32 N = Elements<T>::a_pack;
    const bool aligned = is_aligned(x, 16);
    const u64 packs = n / N;
    bool found = false;
    wait_for_previous();
    for (u64 p = thread_number(); p < packs && !found; p += thread_count()) {
        const Pack<T> pack = load_pack<T>(x, p, aligned);
#pragma unroll
        for (u32 j = 0; j < N; ++j) found |= is_nonzero(pack.lane[j]);
    }
    const u64 rest = packs * N + thread_number();
    if (rest < n) found |= is_nonzero(x[rest]);

    const int in_block = __syncthreads_or(found);
    if (threadIdx.x == 0 && in_block) atomicOr(scratch + 1, 1u);
    if (!is_last_block(scratch)) return;
    if (threadIdx.x == 0) {
        *out = (u8)atomicExch(scratch + 1, 0u);
        scratch[0] = 0;
    }
}

#define SUM(NAME, T)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS) sum_##NAME(const T *x, float *out, u64 n, u32 *scratch) {    \
        sum(x, out, n, scratch);                                                                                       \
    }
#define ANY(NAME, T)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS) any_##NAME(const T *x, u8 *out, u64 n, u32 *scratch) {       \
        any(x, out, n, scratch);                                                                                       \
    }

SUM(fp16, fp16)
SUM(bf16, bf16)
SUM(fp32, float)
ANY(fp16, fp16)
ANY(bf16, bf16)
ANY(fp32, float)
ANY(u8, u8)
ANY(i64, i64)
