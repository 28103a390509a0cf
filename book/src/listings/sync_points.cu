#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda_fp16.h>

constexpr int SIZE = 512;
constexpr int ROUNDS = 20;
constexpr int REPEATS = 100;

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

__global__ void multiply(const __half *x, const __half *w, __half *y) {
    float sum = 0;
    for (int k = 0; k < SIZE; ++k) {
        sum += __half2float(x[blockIdx.x * SIZE + k]) * __half2float(w[k * SIZE + threadIdx.x]);
    }
    y[blockIdx.x * SIZE + threadIdx.x] = __float2half(sum);
}

int main() {
    __half *x, *w, *y;
    for (__half **matrix : {&x, &w, &y}) {
        check(cudaMalloc(matrix, SIZE * SIZE * sizeof(__half)));
        check(cudaMemset(*matrix, 0, SIZE * SIZE * sizeof(__half)));
    }

    // Launched: the call returns at once.
    multiply<<<SIZE, SIZE>>>(x, w, y);
    check(cudaGetLastError());

    // Implicit synchronization: the value must exist before the host can read it.
    __half first;
    check(cudaMemcpy(&first, y, sizeof first, cudaMemcpyDeviceToHost));
    std::printf("%g\n", __half2float(first));

    auto timed = [&](bool forced) {
        check(cudaDeviceSynchronize());
        double start = now();
        for (int i = 0; i < REPEATS; ++i) {
            multiply<<<SIZE, SIZE>>>(x, w, y);
            check(cudaGetLastError());
            if (forced) {
                check(cudaDeviceSynchronize());
            }
        }
        check(cudaDeviceSynchronize());
        return (now() - start) / REPEATS;
    };

    // The same work with and without explicit synchronization, in alternation.
    double async[ROUNDS], forced[ROUNDS];
    for (int round = 0; round < ROUNDS; ++round) {
        async[round] = timed(false);
        forced[round] = timed(true);
    }
    std::sort(async, async + ROUNDS);
    std::sort(forced, forced + ROUNDS);
    std::printf("async: %.1f us\nforced: %.1f us an iteration\n", async[ROUNDS / 2] * 1e6, forced[ROUNDS / 2] * 1e6);

    for (__half *matrix : {x, w, y}) {
        check(cudaFree(matrix));
    }
}
