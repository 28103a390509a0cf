// Rows of a matrix by number.
//
// A row number outside of the matrix must not end the context, as a trap would: the row becomes zeros and the fault
// words of the stream, in host memory, say which number it was. They are read by the host at its next call.
//
// Wide rows take a warp each, narrow ones a thread an element. Elements are moved, not computed with, so that the
// types of 2 bytes share their kernels.
#include "types.cuh"

// As `src/device/cuda/stream/fault.rs` reads them.
struct Fault {
    u64 code;
    i64 row;
    i64 rows;
    u64 ticket;
};

constexpr u64 ROW_OUT_OF_RANGE = 1;

// The first kernel that reports is the cause and stays: those of one stream follow each other. Several threads of it may
// report: each number that wins is one that was out of range.
__device__ __noinline__ void report(volatile Fault *fault, u64 ticket, i64 row, u64 rows) {
    if (fault->code != 0 && fault->ticket != ticket) return;
    fault->row = row;
    fault->rows = (i64)rows;
    fault->ticket = ticket;
    __threadfence_system();
    fault->code = ROW_OUT_OF_RANGE;
}

template <typename T>
__device__ __forceinline__ void wide(const T *x, const i64 *numbers, T *out, u64 rows_out, u64 rows_in, u64 width,
                                     volatile Fault *fault, u64 ticket) {
    constexpr u32 N = Elements<T>::a_pack;
    const u32 lane = threadIdx.x % 32;
    const bool aligned = is_aligned(x, 16) && is_aligned(out, 16) && width % N == 0;
    const u64 step = aligned ? width / N : width;
    wait_for_previous();
    const u64 r = thread_number() / 32;
    if (r >= rows_out) return;
    const i64 number = numbers[r];
    const bool inside = number >= 0 && (u64)number < rows_in;
    if (!inside && lane == 0) report(fault, ticket, number, rows_in);
    const u64 from = inside ? (u64)number * step : 0;
    if (aligned) {
        Pack<T> zeros = {};
        for (u64 c = lane; c < step; c += 32)
            store_pack<T>(out, r * step + c, true, inside ? load_pack<T>(x, from + c, true) : zeros);
    } else {
        for (u64 c = lane; c < step; c += 32) out[r * step + c] = inside ? x[from + c] : T{};
    }
}

template <typename T>
__device__ __forceinline__ void narrow(const T *x, const i64 *numbers, T *out, u64 rows_out, u64 rows_in, u64 width,
                                       volatile Fault *fault, u64 ticket) {
    wait_for_previous();
    const u64 e = thread_number();
    if (e >= rows_out * width) return;
    // The 64-bit division is several times the cost of the 32-bit one, and seldom needed.
    const u64 r = (e | width) >> 32 ? e / width : (u32)e / (u32)width;
    const u64 column = e - r * width;
    const i64 number = numbers[r];
    const bool inside = number >= 0 && (u64)number < rows_in;
    if (!inside && column == 0) report(fault, ticket, number, rows_in);
    out[e] = inside ? x[(u64)number * width + column] : T{};
}

#define GATHER(NAME, T)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        gather_wide_##NAME(const T *x, const i64 *numbers, T *out, u64 rows_out, u64 rows_in, u64 width,               \
                           volatile Fault *fault, u64 ticket) {                                                                    \
        wide(x, numbers, out, rows_out, rows_in, width, fault, ticket);                                                        \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        gather_narrow_##NAME(const T *x, const i64 *numbers, T *out, u64 rows_out, u64 rows_in, u64 width,             \
                             volatile Fault *fault, u64 ticket) {                                                                  \
        narrow(x, numbers, out, rows_out, rows_in, width, fault, ticket);                                                      \
    }

GATHER(16, u16)
GATHER(32, u32)
