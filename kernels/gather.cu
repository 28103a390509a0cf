// Rows of a matrix by number.
//
// A row number outside of the matrix must not end the context, as a trap would: the row becomes zeros and the fault
// words of the stream, in host memory, say which number it was. They are read by the host at its next call.
//
// A wide row is moved in pieces, of which each takes a warp: a row however long is moved by as many warps as it has pieces.
// Narrow rows take a thread an element. Elements are moved, not computed with, so that the types of 2 bytes share their
// kernels.
#include "types.cuh"

// As `src/syncscope/device/cuda/stream/fault.rs` reads them.
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
    const u64 row = width * sizeof(T), pieces = (row + PIECE - 1) / PIECE;
    // What every row of both sides begins at a multiple of.
    const u64 common = (u64)x | (u64)out | row;
    wait_for_previous();
    const u64 warp = thread_number() / 32;
    const u64 r = (warp | pieces) >> 32 ? warp / pieces : (u32)warp / (u32)pieces;
    if (r >= rows_out) return;
    const u64 begin = (warp - r * pieces) * PIECE;
    const u64 bytes = row - begin < PIECE ? row - begin : PIECE;
    const i64 number = numbers[r];
    const bool inside = number >= 0 && (u64)number < rows_in;
    if (!inside && begin == 0 && threadIdx.x % 32 == 0) report(fault, ticket, number, rows_in);
    const char *from = (const char *)x + (inside ? (u64)number * row + begin : 0);
    char *to = (char *)out + r * row + begin;
    move<T>(from, to, bytes, inside, common);
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
