// As much of CUDA as `kernels/compact.cu` and `kernels/gather.cu` need, on the host: a block's threads are fibers that take turns, and blocks run
// one after the other. A kernel in which no block waits for another computes here what it computes on a GPU.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(threads)
#define __shared__ static
// PTX: not reached here.
#define asm(...)

struct Index {
    unsigned x, y, z;
};
struct uint2 {
    unsigned x, y;
};
struct uint4 {
    unsigned x, y, z, w;
};

inline Index threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

constexpr unsigned WARP = 32;

inline ucontext_t scheduler;
inline std::vector<ucontext_t> fibers;
inline std::vector<bool> ended;
inline unsigned current, at_barrier, alive;
inline std::function<void()> body;
// What the lanes of each warp exchange, and how many of them have come to the exchange and left it.
inline std::vector<std::vector<unsigned long long>> exchanged;

inline void pause() {
    const unsigned self = current;
    swapcontext(&fibers[self], &scheduler);
}

inline void run_fiber() {
    body();
    ended[current] = true;
    --alive;
    swapcontext(&fibers[current], &scheduler);
}

// Runs `kernel` for each block of a grid, in a random order.
template <typename K> void launch(unsigned blocks, unsigned threads, std::mt19937 &random, K kernel) {
    static std::vector<std::unique_ptr<char[]>> stacks;
    constexpr size_t STACK = 1 << 16;
    while (stacks.size() < threads) stacks.push_back(std::make_unique<char[]>(STACK));
    std::vector<unsigned> order(blocks);
    for (unsigned b = 0; b < blocks; ++b) order[b] = b;
    std::shuffle(order.begin(), order.end(), random);
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    body = kernel;
    for (unsigned block : order) {
        blockIdx = {block, 0, 0};
        fibers.assign(threads, {});
        ended.assign(threads, false);
        exchanged.assign(threads / WARP, {});
        alive = threads;
        for (unsigned t = 0; t < threads; ++t) {
            getcontext(&fibers[t]);
            fibers[t].uc_stack.ss_sp = stacks[t].get();
            fibers[t].uc_stack.ss_size = STACK;
            makecontext(&fibers[t], run_fiber, 0);
        }
        // In turn, so that all threads come to a barrier in the same round.
        while (alive > 0)
            for (unsigned t = 0; t < threads; ++t) {
                if (ended[t]) continue;
                current = t;
                threadIdx = {t, 0, 0};
                swapcontext(&scheduler, &fibers[t]);
            }
    }
}

// All lanes of a warp give a value and see those of all. A first pause lets the others give theirs, a second lets them read.
template <typename T> std::vector<T> exchange(T mine) {
    auto &values = exchanged[threadIdx.x / WARP];
    if (threadIdx.x % WARP == 0 || values.size() != WARP) values.resize(WARP);
    values[threadIdx.x % WARP] = (unsigned long long)mine;
    pause();
    std::vector<T> all;
    for (unsigned long long value : exchanged[threadIdx.x / WARP]) all.push_back((T)value);
    pause();
    return all;
}

} // namespace emulator

inline void __syncthreads() { emulator::pause(); }
template <typename T> T __shfl_xor_sync(unsigned, T x, unsigned lanes) {
    return emulator::exchange(x)[threadIdx.x % 32 ^ lanes];
}
template <typename T> T __shfl_up_sync(unsigned, T x, unsigned step) {
    const unsigned lane = threadIdx.x % 32;
    return emulator::exchange(x)[lane >= step ? lane - step : lane];
}
template <typename T> T __shfl_sync(unsigned, T x, unsigned lane) { return emulator::exchange(x)[lane]; }
inline unsigned __ballot_sync(unsigned, bool yes) {
    unsigned ballot = 0, lane = 0;
    for (unsigned bit : emulator::exchange<unsigned>(yes)) ballot |= bit << lane++;
    return ballot;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline void __threadfence_system() {}
template <typename T> T atomicAdd(T *at, T x) {
    const T old = *at;
    *at += x;
    return old;
}
inline uint4 __ldcs(const uint4 *from) { return *from; }
inline float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
