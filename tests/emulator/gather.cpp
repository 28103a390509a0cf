// Runs `kernels/gather.cu` on the host and compares what it takes with what a loop takes. Exits with 1 where they differ.
#include "cuda.hpp"

#include "gather.cu"

#include <cstdio>

// Rows that begin `x_offset` and `out_offset` elements behind a multiple of 16 bytes; one number is out of range if asked for.
template <typename T, typename K>
bool agrees(K kernel, bool by_warps, u64 rows_out, u64 width, u64 x_offset, u64 out_offset, bool fails, std::mt19937 &random) {
    const u64 rows_in = 7;
    const T untouched = (T)0xA5A5A5A5u;
    auto aligned = [](std::vector<T> &storage) { return storage.data() + (16 - (u64)storage.data() % 16) % 16 / sizeof(T); };
    std::vector<T> from(rows_in * width + 32), to(rows_out * width + 32, untouched);
    T *x = aligned(from) + x_offset, *out = aligned(to) + out_offset;
    for (u64 e = 0; e < rows_in * width; ++e) x[e] = (T)random();
    std::vector<i64> numbers(rows_out);
    for (i64 &number : numbers) number = random() % rows_in;
    const u64 wrong = rows_out / 2;
    if (fails) numbers[wrong] = random() % 2 ? (i64)rows_in : -1;
    Fault fault = {};
    const u64 pieces = (width * sizeof(T) + PIECE - 1) / PIECE;
    const u64 threads = by_warps ? rows_out * pieces * 32 : rows_out * width;
    emulator::launch((unsigned)((threads + 255) / 256), 256, random,
                     [&] { kernel(x, numbers.data(), out, rows_out, rows_in, width, &fault, 3); });
    bool right = fault.code == (fails ? ROW_OUT_OF_RANGE : 0);
    if (fails) right &= fault.row == numbers[wrong] && fault.rows == (i64)rows_in && fault.ticket == 3;
    for (u64 r = 0; r < rows_out; ++r)
        for (u64 c = 0; c < width; ++c) {
            const T expected = fails && r == wrong ? (T)0 : x[numbers[r] * (i64)width + (i64)c];
            right &= out[r * width + c] == expected;
        }
    // Nothing before and behind is written.
    for (T *p = to.data(); p < out; ++p) right &= *p == untouched;
    for (T *p = out + rows_out * width; p < to.data() + to.size(); ++p) right &= *p == untouched;
    if (!right)
        std::printf("%zu bytes, %llu rows of %llu, offsets %llu and %llu: wrong\n", sizeof(T), rows_out, width, x_offset, out_offset);
    return right;
}

int main() {
    std::mt19937 random(1);
    bool good = true;
    // Below, at and above a batch of loads, a piece, and several pieces; of every alignment.
    for (u64 width : {32ull, 33ull, 34ull, 36ull, 40ull, 127ull, 1024ull, 1025ull, 2048ull, 2050ull, 9999ull})
        for (u64 x_offset : {0ull, 1ull, 2ull})
            for (u64 out_offset : {0ull, 2ull})
                for (bool fails : {false, true}) {
                    good &= agrees<u16>(gather_wide_16, true, 3, width, x_offset, out_offset, fails, random);
                    good &= agrees<u32>(gather_wide_32, true, 3, width, x_offset, out_offset, fails, random);
                }
    for (u64 width : {1ull, 5ull, 31ull})
        for (bool fails : {false, true}) {
            good &= agrees<u16>(gather_narrow_16, false, 100, width, 1, 0, fails, random);
            good &= agrees<u32>(gather_narrow_32, false, 100, width, 1, 0, fails, random);
        }
    return good ? 0 : 1;
}
