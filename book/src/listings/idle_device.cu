#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

constexpr int SIZE = 100;
constexpr int LOOPS = 100;
constexpr int ROUNDS = 20;

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

__global__ void square(const float *a, float *product) {
    float sum = 0;
    for (int k = 0; k < SIZE; ++k) {
        sum += a[blockIdx.x * SIZE + k] * a[k * SIZE + threadIdx.x];
    }
    product[blockIdx.x * SIZE + threadIdx.x] = sum;
}

int main() {
    // Every device has a second stream. Few machines have a second device.
    cudaStream_t busy, idle;
    check(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking));
    check(cudaStreamCreateWithFlags(&idle, cudaStreamNonBlocking));
    float *a, *product;
    check(cudaMalloc(&a, SIZE * SIZE * sizeof(float)));
    check(cudaMalloc(&product, SIZE * SIZE * sizeof(float)));
    check(cudaMemset(a, 0, SIZE * SIZE * sizeof(float)));

    auto timed = [&](cudaStream_t stream) {
        check(cudaDeviceSynchronize());
        double start = now();
        for (int loop = 0; loop < LOOPS; ++loop) {
            square<<<SIZE, SIZE, 0, busy>>>(a, product);
            check(cudaGetLastError());
            check(cudaStreamSynchronize(stream));
        }
        // Both loops end with their work done.
        check(cudaStreamSynchronize(busy));
        return (now() - start) / LOOPS;
    };
    timed(idle);
    timed(busy);

    // In turn, so that a change of the machine's speed affects both.
    double other[ROUNDS], same[ROUNDS];
    for (int round = 0; round < ROUNDS; ++round) {
        other[round] = timed(idle);
        same[round] = timed(busy);
    }
    std::sort(other, other + ROUNDS);
    std::sort(same, same + ROUNDS);
    std::printf("other: %.1f us\nsame: %.1f us\n", other[ROUNDS / 2] * 1e6, same[ROUNDS / 2] * 1e6);

    check(cudaFree(product));
    check(cudaFree(a));
    check(cudaStreamDestroy(idle));
    check(cudaStreamDestroy(busy));
}
