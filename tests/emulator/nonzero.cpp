// Runs `kernels/compact.cu` on the host and compares what it finds with what a loop finds. Exits with 1 where they differ.
#include "cuda.hpp"

#include "compact.cu"

#include <cstdio>
#include <cstring>

// An element that is or is not zero.
template <typename T> T element(bool set, std::mt19937 &random) {
    T x;
    std::memset(&x, 0, sizeof x);
    // One bit, so that a bit that is overlooked shows. The highest bit of a real number is its sign.
    const unsigned bits = 8 * sizeof(T), usable = std::is_integral_v<T> ? bits : bits - 1;
    if (set) {
        const unsigned bit = random() % usable;
        reinterpret_cast<unsigned char *>(&x)[bit / 8] |= 1u << bit % 8;
    } else if (usable < bits && random() % 2 == 0) {
        reinterpret_cast<unsigned char *>(&x)[sizeof(T) - 1] = 0x80; // -0.0
    }
    return x;
}

std::vector<u64> words;

template <typename T, typename K>
bool agrees(const char *type, K kernel, u64 n, double share, u64 offset, std::mt19937 &random) {
    std::vector<T> storage(n + offset + 16);
    const u64 misaligned = (u64)storage.data() % 16 / sizeof(T);
    T *x = storage.data() + (misaligned ? 16 / sizeof(T) - misaligned : 0) + offset;
    std::vector<i64> expected;
    for (u64 i = 0; i < n; ++i) {
        const bool set = random() < share * 4294967296.0;
        x[i] = element<T>(set, random);
        if (set) expected.push_back((i64)i);
    }
    const u64 tiles = (n + TILE - 1) / TILE, groups = (tiles + GROUP - 1) / GROUP;
    // Content of earlier use, which the kernels must not count on.
    std::vector<u32> marks(tiles * TILE / 32, 0xdeadbeef), counts(tiles, 0xdeadbeef), sums(groups, 0xdeadbeef);
    words.resize(std::max<size_t>(words.size(), 1 + groups), 0);
    std::vector<i64> found(n + 1, -7);
    i64 count = -1;
    emulator::launch((unsigned)tiles, THREADS, random,
                     [&] { kernel(x, n, marks.data(), counts.data(), sums.data(), words.data(), &count); });
    emulator::launch((unsigned)tiles, THREADS, random,
                     [&] { positions(marks.data(), counts.data(), sums.data(), found.data()); });
    const bool zero = std::all_of(words.begin(), words.end(), [](u64 word) { return word == 0; });
    const bool right = count == (i64)expected.size() && std::equal(expected.begin(), expected.end(), found.begin());
    const bool inside = std::all_of(found.begin() + (long)expected.size(), found.end(), [](i64 p) { return p == -7; });
    if (zero && right && inside) return true;
    std::printf("%s, %llu elements, share %g, offset %llu: count %lld of %zu, %s, %s, %s\n", type, n, share, offset,
                (long long)count, expected.size(), zero ? "words zero" : "words left", right ? "right" : "wrong",
                inside ? "inside" : "written past the count");
    return false;
}

int main() {
    std::mt19937 random(1);
    bool good = true;
    for (u64 n : {31ull, 8192ull, 20001ull})
        for (double share : {0.0, 0.02, 1.0})
            for (u64 offset : {0ull, 1ull}) {
                good &= agrees<fp16>("fp16", mark_nonzero_fp16, n, share, offset, random);
                good &= agrees<bf16>("bf16", mark_nonzero_bf16, n, share, offset, random);
                good &= agrees<float>("fp32", mark_nonzero_fp32, n, share, offset, random);
                good &= agrees<u8>("u8", mark_nonzero_u8, n, share, offset, random);
                good &= agrees<i64>("i64", mark_nonzero_i64, n, share, offset, random);
            }
    // More than one group of tiles, the last one short.
    good &= agrees<u8>("u8", mark_nonzero_u8, 2ull * TILE * GROUP + 5, 0.0001, 0, random);
    return good ? 0 : 1;
}
