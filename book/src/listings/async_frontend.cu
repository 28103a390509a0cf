#include <chrono>
#include <cstdio>
#include <cstdlib>

constexpr int SIZE = 256;
constexpr int LAUNCHES = 10;

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

__global__ void fill(float *x, float value) {
    x[blockIdx.x * SIZE + threadIdx.x] = value;
}

// Adds the mean of x · w to a loss: one element of the product a thread.
__global__ void add_loss(const float *x, const float *w, float *loss) {
    float sum = 0;
    for (int k = 0; k < SIZE; ++k) {
        sum += x[blockIdx.x * SIZE + k] * w[k * SIZE + threadIdx.x];
    }
    atomicAdd(loss, sum / (SIZE * SIZE));
}

int main() {
    float *x, *w, *losses, results[LAUNCHES];
    check(cudaMalloc(&x, SIZE * SIZE * sizeof(float)));
    check(cudaMalloc(&w, SIZE * SIZE * sizeof(float)));
    check(cudaMalloc(&losses, sizeof results));
    check(cudaMemset(losses, 0, sizeof results));
    fill<<<SIZE, SIZE>>>(x, 0.5f);
    fill<<<SIZE, SIZE>>>(w, 0.25f);
    check(cudaDeviceSynchronize());

    // Launched, not read: the losses stay on the device.
    double start = now();
    for (int i = 0; i < LAUNCHES; ++i) {
        add_loss<<<SIZE, SIZE>>>(x, w, losses + i);
    }
    check(cudaGetLastError());
    std::printf("dispatch returned after %.6f s\n", now() - start);

    // One synchronization point for all of them: the copy waits for the kernels.
    start = now();
    check(cudaMemcpy(results, losses, sizeof results, cudaMemcpyDeviceToHost));
    double mean = 0;
    for (float loss : results) {
        mean += loss / LAUNCHES;
    }
    std::printf("mean %f, after a wait of %.6f s\n", mean, now() - start);

    check(cudaFree(losses));
    check(cudaFree(w));
    check(cudaFree(x));
}
