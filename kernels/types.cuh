// Element types, their conversions, packs of 16 bytes, and the order of launches: what all kernel files share.
//
// Nothing here needs a CUDA header, so that NVRTC needs no include path: fp16 converts by PTX instructions, bf16 by
// bit operations. All arithmetic is in fp32 and rounds once, to nearest even, when it is stored.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

struct fp16 {
    u16 bits;
};

struct bf16 {
    u16 bits;
};

__device__ __forceinline__ float to_float(float x) { return x; }

__device__ __forceinline__ float to_float(fp16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}

__device__ __forceinline__ float to_float(bf16 x) { return __uint_as_float((u32)x.bits << 16); }

__device__ __forceinline__ void from_float(float x, float &out) { out = x; }

__device__ __forceinline__ void from_float(float x, fp16 &out) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
}

// Adding 0x7fff plus the lowest kept bit carries exactly where the nearest even value lies above. A NaN must not
// carry into an infinity: it keeps its upper half and becomes quiet.
__device__ __forceinline__ void from_float(float x, bf16 &out) {
    u32 bits = __float_as_uint(x);
    u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    out.bits = (u16)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
}

// By bits: -0.0 is zero, a NaN and a subnormal are not.
__device__ __forceinline__ bool is_nonzero(float x) { return (__float_as_uint(x) & 0x7fffffffu) != 0u; }
__device__ __forceinline__ bool is_nonzero(fp16 x) { return (x.bits & 0x7fffu) != 0u; }
__device__ __forceinline__ bool is_nonzero(bf16 x) { return (x.bits & 0x7fffu) != 0u; }
__device__ __forceinline__ bool is_nonzero(u8 x) { return x != 0u; }
__device__ __forceinline__ bool is_nonzero(i64 x) { return x != 0; }

// As many elements as one memory instruction moves.
template <typename T> struct Elements {
    static constexpr u32 a_pack = 16 / sizeof(T);
};

template <typename T, u32 N = Elements<T>::a_pack> struct alignas(sizeof(T) * N) Pack {
    T lane[N];
};

__device__ __forceinline__ bool is_aligned(const void *pointer, u32 bytes) { return ((u64)pointer & (bytes - 1)) == 0; }

// Pack `index` of an array: one instruction where the array is aligned (a region may start anywhere), else one an
// element. The branch is the same for all threads.
template <typename T, u32 N = Elements<T>::a_pack>
__device__ __forceinline__ Pack<T, N> load_pack(const T *from, u64 index, bool aligned) {
    if (aligned) return reinterpret_cast<const Pack<T, N> *>(from)[index];
    Pack<T, N> pack;
#pragma unroll
    for (u32 j = 0; j < N; ++j) pack.lane[j] = from[index * N + j];
    return pack;
}

template <typename T, u32 N>
__device__ __forceinline__ void store_pack(T *to, u64 index, bool aligned, const Pack<T, N> &pack) {
    if (aligned) {
        reinterpret_cast<Pack<T, N> *>(to)[index] = pack;
        return;
    }
#pragma unroll
    for (u32 j = 0; j < N; ++j) to[index * N + j] = pack.lane[j];
}

// As `load_pack`, for what is read once: it leaves the cache first, so that what is written stays for the next kernel.
template <typename T> __device__ __forceinline__ Pack<T> load_pack_once(const T *from, u64 index, bool aligned) {
    if (!aligned) return load_pack<T>(from, index, false);
    union {
        uint4 words;
        Pack<T> pack;
    } both;
    both.words = __ldcs(reinterpret_cast<const uint4 *>(from) + index);
    return both.pack;
}

// The bytes of a piece that a warp moves, as `operations.rs` has them, and how many loads of a lane are under way before it stores.
constexpr u64 PIECE = 4096;
constexpr u32 BATCH = 4;

// Moves `bytes` bytes by one warp, or zeros where nothing is read, in units of U, of which both sides and the number of bytes are
// multiples.
template <typename U>
__device__ __forceinline__ void move_units(const void *from, void *to, u64 bytes, bool inside) {
    const U *source = (const U *)from;
    U *target = (U *)to;
    const u32 units = (u32)(bytes / sizeof(U));
    for (u32 at = threadIdx.x % 32; at < units; at += 32 * BATCH) {
        U batch[BATCH] = {};
#pragma unroll
        for (u32 j = 0; j < BATCH; ++j)
            if (inside && at + 32 * j < units) batch[j] = source[at + 32 * j];
#pragma unroll
        for (u32 j = 0; j < BATCH; ++j)
            if (at + 32 * j < units) target[at + 32 * j] = batch[j];
    }
}

// As `move_units`, in the largest units that divide `common`, of which the addresses and the number of bytes are multiples.
// T is the smallest.
template <typename T>
__device__ __forceinline__ void move(const void *from, void *to, u64 bytes, bool inside, u64 common) {
    if (common % 16 == 0)
        move_units<uint4>(from, to, bytes, inside);
    else if (common % 8 == 0)
        move_units<uint2>(from, to, bytes, inside);
    else if (common % 4 == 0)
        move_units<u32>(from, to, bytes, inside);
    else
        move_units<T>(from, to, bytes, inside);
}

__device__ __forceinline__ u64 thread_number() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ u64 thread_count() { return (u64)gridDim.x * blockDim.x; }

// The first statement of every kernel but `spin_in_halves`. A kernel may be started while the one before it on its stream ends
// (programmatic stream serialization, which the launch asks for where the device has it): from here on that one is
// over and what it wrote can be seen.
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel start now, where its launch allows that: by itself it may only start when this one ends.
__device__ __forceinline__ void let_next_start() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// The global timer: nanoseconds of one clock of the device.
__device__ __forceinline__ u64 now() {
    u64 ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

// Returns after this long: the latest time of the timer.
__device__ __forceinline__ u64 spin_for(u64 nanoseconds) {
    const u64 start = now();
    u64 latest = start;
    while (latest - start < nanoseconds) latest = now();
    return latest;
}
