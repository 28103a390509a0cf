// Standard normals: Philox 4x32-10 and Box-Muller, element by element as `src/syncscope/device/philox.rs` documents.
//
// A thread makes 16 bytes of output: one Philox block for fp32, two for the types of 2 bytes. Uniforms are
// rounded exactly as on the host; logarithm, sine and cosine are the hardware's approximations, kept where their absolute
// error is below 1e-6 of a normal.
#include "types.cuh"

// The keys of the ten rounds, which follow from the seed: as `src/syncscope/device/philox.rs` computes them, once a
// launch instead of once a block of four.
struct Keys {
    u32 of_round[10][2];
};

__device__ __forceinline__ uint4 philox(const Keys &keys, u64 sequence, u64 block) {
    u32 x = (u32)block, y = (u32)(block >> 32), z = (u32)sequence, w = (u32)(sequence >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const u64 first = (u64)0xD2511F53u * x;
        const u64 second = (u64)0xCD9E8D57u * z;
        x = (u32)(second >> 32) ^ y ^ keys.of_round[round][0];
        y = (u32)second;
        z = (u32)(first >> 32) ^ w ^ keys.of_round[round][1];
        w = (u32)first;
    }
    return make_uint4(x, y, z, w);
}

// The host rounds the word to fp32, adds, and scales by a power of two: so must this, without contraction.
__device__ __forceinline__ float uniform(u32 word) {
    return __fmul_rn(__fadd_rn(__uint2float_rn(word), 0.5f), 2.3283064365386963e-10f);
}

// -ln u. The approximation has an absolute error of 2^-22 near 1, where the logarithm itself is as small and the root
// that follows would enlarge it: there the series of ln(1 - e) takes its place, whose next term is below 3e-9.
__device__ __forceinline__ float minus_log(float u) {
    const float e = 1.0f - u;
    const float series = e * fmaf(e, fmaf(e, 1.0f / 3.0f, 0.5f), 1.0f);
    return e < 0.01f ? series : -__logf(u);
}

__device__ __forceinline__ void box_muller(u32 radius, u32 angle, float &first, float &second) {
    float r, sine, cosine;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(2.0f * minus_log(uniform(radius))));
    // Half a turn less turns both signs, and keeps the argument within pi, where the approximation is good.
    __sincosf(6.2831853f * (uniform(angle) - 0.5f), &sine, &cosine);
    first = -r * cosine;
    second = -r * sine;
}

template <typename T> __device__ __forceinline__ void normals(T *out, u64 n, const Keys &keys, u64 sequence) {
    constexpr u32 N = Elements<T>::a_pack;
    wait_for_previous();
    const u64 p = thread_number();
    if (p * N >= n) return;
    Pack<T> pack;
#pragma unroll
    for (u32 b = 0; b < N / 4; ++b) {
        const uint4 words = philox(keys, sequence, p * (N / 4) + b);
        float value[4];
        box_muller(words.x, words.y, value[0], value[1]);
        box_muller(words.z, words.w, value[2], value[3]);
#pragma unroll
        for (u32 j = 0; j < 4; ++j) from_float(value[j], pack.lane[4 * b + j]);
    }
    if ((p + 1) * N <= n) {
        store_pack<T>(out, p, is_aligned(out, 16), pack);
    } else {
#pragma unroll
        for (u32 j = 0; j < N; ++j)
            if (p * N + j < n) out[p * N + j] = pack.lane[j];
    }
}

#define NORMAL(NAME, T)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        normal_##NAME(T *out, u64 n, const __grid_constant__ Keys keys, u64 sequence) {                                \
        normals(out, n, keys, sequence);                                                                               \
    }

NORMAL(fp16, fp16)
NORMAL(bf16, bf16)
NORMAL(fp32, float)
