#include <algorithm>
#include <cstdio>
#include <cstdlib>

constexpr int ELEMENTS = 100'000;
constexpr int ITERATIONS = 6;
constexpr int THREADS = 256;

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__global__ void add_twice_the_mean(const float *batch, float *sum) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < ELEMENTS) {
        atomicAdd(sum, batch[i] * 2 / ELEMENTS);
    }
}

int main() {
    cudaStream_t transfer, compute;
    check(cudaStreamCreateWithFlags(&transfer, cudaStreamNonBlocking));
    check(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    float *batches[2], *buffers[2], *sums;
    cudaEvent_t filled[2], used[2];
    for (int i = 0; i < 2; ++i) {
        check(cudaMallocHost(&batches[i], ELEMENTS * sizeof(float)));
        check(cudaMalloc(&buffers[i], ELEMENTS * sizeof(float)));
        check(cudaEventCreateWithFlags(&filled[i], cudaEventDisableTiming));
        check(cudaEventCreateWithFlags(&used[i], cudaEventDisableTiming));
    }
    check(cudaMalloc(&sums, ITERATIONS * sizeof(float)));
    check(cudaMemset(sums, 0, ITERATIONS * sizeof(float)));
    check(cudaDeviceSynchronize());

    for (int iteration = 0; iteration < ITERATIONS; ++iteration) {
        int now = iteration % 2;
        // Waits until the copy from this host buffer is complete.
        check(cudaEventSynchronize(filled[now]));
        std::fill_n(batches[now], ELEMENTS, float(iteration));

        // The copy must not overwrite a buffer that a kernel still reads.
        check(cudaStreamWaitEvent(transfer, used[now], 0));
        check(cudaMemcpyAsync(buffers[now], batches[now], ELEMENTS * sizeof(float), cudaMemcpyHostToDevice, transfer));
        check(cudaEventRecord(filled[now], transfer));

        // The kernel must not start before the copy is complete.
        check(cudaStreamWaitEvent(compute, filled[now], 0));
        int blocks = (ELEMENTS + THREADS - 1) / THREADS;
        add_twice_the_mean<<<blocks, THREADS, 0, compute>>>(buffers[now], sums + iteration);
        check(cudaGetLastError());
        check(cudaEventRecord(used[now], compute));
    }
    float results[ITERATIONS];
    check(cudaStreamSynchronize(compute));
    check(cudaMemcpy(results, sums, sizeof results, cudaMemcpyDeviceToHost));
    for (float result : results) {
        std::printf("%g ", result);
    }
    std::printf("\n");

    for (int i = 0; i < 2; ++i) {
        check(cudaEventDestroy(used[i]));
        check(cudaEventDestroy(filled[i]));
        check(cudaFree(buffers[i]));
        check(cudaFreeHost(batches[i]));
    }
    check(cudaFree(sums));
    check(cudaStreamDestroy(compute));
    check(cudaStreamDestroy(transfer));
}
