#include <chrono>
#include <cstdio>
#include <cstdlib>

constexpr int ELEMENTS = 1024;

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__global__ void spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

__global__ void add_one(float *x) {
    x[threadIdx.x] += 1;
}

int main() {
    cudaStream_t producer, consumer;
    check(cudaStreamCreateWithFlags(&producer, cudaStreamNonBlocking));
    check(cudaStreamCreateWithFlags(&consumer, cudaStreamNonBlocking));
    float *shared, *copy;
    for (float **array : {&shared, &copy}) {
        check(cudaMalloc(array, ELEMENTS * sizeof(float)));
        check(cudaMemset(*array, 0, ELEMENTS * sizeof(float)));
    }
    cudaEvent_t written;
    check(cudaEventCreateWithFlags(&written, cudaEventDisableTiming));
    check(cudaDeviceSynchronize());

    // The producer is busy first, and then writes.
    spin<<<1, 1, 0, producer>>>(10'000'000);
    add_one<<<1, ELEMENTS, 0, producer>>>(shared);
    check(cudaGetLastError());
    check(cudaEventRecord(written, producer));

    // The consumer waits on the device. The host goes on.
    // Without this line the copy might contain zeros.
    check(cudaStreamWaitEvent(consumer, written, 0));
    check(cudaMemcpyAsync(copy, shared, ELEMENTS * sizeof(float), cudaMemcpyDeviceToDevice, consumer));
    std::printf("written yet: %s\n", cudaEventQuery(written) == cudaSuccess ? "true" : "false");

    // Synchronizes one stream. `cudaDeviceSynchronize()` waits for all streams.
    auto start = std::chrono::steady_clock::now();
    check(cudaStreamSynchronize(consumer));
    std::chrono::duration<double> wait = std::chrono::steady_clock::now() - start;
    float value;
    check(cudaMemcpy(&value, copy, sizeof value, cudaMemcpyDeviceToHost));
    std::printf("waited %.6f s for %g\n", wait.count(), value);

    check(cudaEventDestroy(written));
    check(cudaFree(copy));
    check(cudaFree(shared));
    check(cudaStreamDestroy(consumer));
    check(cudaStreamDestroy(producer));
}
