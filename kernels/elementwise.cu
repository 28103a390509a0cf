// One output element from one element of each input: fill, affine, add, subtract, multiply, greater.
//
// A thread handles one pack of 16 bytes; what does not fill a pack is handled by the last threads of the grid, one
// element each. Every other launch of a stream goes through the data backward: it begins with what the one before
// touched last, which still lies in the cache.
#include "types.cuh"

template <typename T, typename U, typename F> __device__ __forceinline__ void map(const T *x, U *out, u64 n, u32 backward, F f) {
    constexpr u32 N = Elements<T>::a_pack;
    wait_for_previous();
    const u64 t = thread_number(), behind = thread_count() - 1 - t, p = backward ? behind : t, packs = n / N;
    if (p < packs) {
        const Pack<T> in = load_pack_once<T>(x, p, is_aligned(x, 16));
        Pack<U, N> result;
#pragma unroll
        for (u32 j = 0; j < N; ++j) f(in.lane[j], result.lane[j]);
        store_pack<U, N>(out, p, is_aligned(out, N * sizeof(U)), result);
    }
    const u64 last = packs * N + behind;
    if (last < n) f(x[last], out[last]);
}

template <typename T, typename F>
__device__ __forceinline__ void zip(const T *a, const T *b, T *out, u64 n, u32 backward, F f) {
    constexpr u32 N = Elements<T>::a_pack;
    wait_for_previous();
    const u64 t = thread_number(), behind = thread_count() - 1 - t, p = backward ? behind : t, packs = n / N;
    if (p < packs) {
        const Pack<T> left = load_pack_once<T>(a, p, is_aligned(a, 16));
        const Pack<T> right = load_pack_once<T>(b, p, is_aligned(b, 16));
        Pack<T> result;
#pragma unroll
        for (u32 j = 0; j < N; ++j) from_float(f(to_float(left.lane[j]), to_float(right.lane[j])), result.lane[j]);
        store_pack<T>(out, p, is_aligned(out, 16), result);
    }
    const u64 last = packs * N + behind;
    if (last < n) from_float(f(to_float(a[last]), to_float(b[last])), out[last]);
}

#define REAL_KERNELS(NAME, T)                                                                                          \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        affine_##NAME(const T *x, T *out, u64 n, u32 backward, float scale, float shift) {                             \
        map(x, out, n, backward, [=](T from, T &to) { from_float(fmaf(to_float(from), scale, shift), to); });          \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        add_##NAME(const T *a, const T *b, T *out, u64 n, u32 backward) {                                              \
        zip(a, b, out, n, backward, [](float p, float q) { return p + q; });                                           \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        subtract_##NAME(const T *a, const T *b, T *out, u64 n, u32 backward) {                                         \
        zip(a, b, out, n, backward, [](float p, float q) { return p - q; });                                           \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        multiply_##NAME(const T *a, const T *b, T *out, u64 n, u32 backward) {                                         \
        zip(a, b, out, n, backward, [](float p, float q) { return p * q; });                                           \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        greater_##NAME(const T *x, u8 *out, u64 n, u32 backward, float threshold) {                                    \
        map(x, out, n, backward, [=](T from, u8 &to) { to = to_float(from) > threshold ? 1 : 0; });                    \
    }

REAL_KERNELS(fp16, fp16)
REAL_KERNELS(bf16, bf16)
REAL_KERNELS(fp32, float)

// `pattern` is the element, repeated to 8 bytes. Elements are aligned to their size, and all sizes divide 8, so that
// the byte at address `a` is byte `a mod 8` of the pattern whatever the type: one kernel fills every type.
extern "C" __global__ void __launch_bounds__(256) fill(u8 *out, u64 bytes, u64 pattern) {
    wait_for_previous();
    const u64 lead = -(u64)out & 15u;
    const u64 head = lead < bytes ? lead : bytes;
    const u64 t = thread_number(), packs = (bytes - head) / 16;
    if (t < packs) {
        Pack<u64> value;
        value.lane[0] = value.lane[1] = pattern;
        reinterpret_cast<Pack<u64> *>(out + head)[t] = value;
    }
    // The first 32 threads: 16 for what lies before the packs, 16 for what lies behind.
    if (t < 32) {
        const u64 at = t < 16 ? t : head + packs * 16 + (t - 16);
        if (at < (t < 16 ? head : bytes)) out[at] = (u8)(pattern >> (8 * ((u64)(out + at) & 7u)));
    }
}
