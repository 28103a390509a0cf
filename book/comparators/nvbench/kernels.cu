// The kernels of `self-audit.kernel`, at its sizes, under NVIDIA's nvbench.

#include <nvbench/nvbench.cuh>

#include "../../peers/pytorch_system/kernels.cu"

#include <algorithm>

// Memory of the device that holds ones.
struct Ones {
    float* data;

    explicit Ones(size_t count) {
        NVBENCH_CUDA_CALL(cudaMalloc(&data, count * sizeof(float)));
        std::vector<float> ones(count, 1.0f);
        NVBENCH_CUDA_CALL(cudaMemcpy(data, ones.data(), count * sizeof(float), cudaMemcpyHostToDevice));
    }
    Ones(const Ones&) = delete;
    ~Ones() { cudaFree(data); }
};

void time_saxpy(nvbench::state& state) {
    unsigned n = state.get_int64("size");
    Ones x(n), y(n);
    state.exec([&](nvbench::launch& on) { saxpy<<<(n + 255) / 256, 256, 0, on.get_stream()>>>(0.5f, x.data, y.data, n); });
}

void time_sum(nvbench::state& state) {
    unsigned n = state.get_int64("size"), threads = std::clamp(n / 4, 1u, 1u << 18);
    Ones x(n), out(1);
    state.exec([&](nvbench::launch& on) { sum<<<(threads + 255) / 256, 256, 0, on.get_stream()>>>(x.data, out.data, n); });
}

void time_transpose(nvbench::state& state) {
    unsigned n = state.get_int64("size"), blocks = (n + 31) / 32;
    Ones x(size_t(n) * n), y(size_t(n) * n);
    dim3 grid(blocks, blocks), block(32, 8);
    state.exec([&](nvbench::launch& on) { transpose<<<grid, block, 0, on.get_stream()>>>(x.data, y.data, n); });
}

void time_matmul(nvbench::state& state) {
    unsigned n = state.get_int64("size"), blocks = (n + 15) / 16;
    Ones a(size_t(n) * n), b(size_t(n) * n), c(size_t(n) * n);
    dim3 grid(blocks, blocks), block(16, 16);
    state.exec([&](nvbench::launch& on) { matmul<<<grid, block, 0, on.get_stream()>>>(a.data, b.data, c.data, n); });
}

NVBENCH_BENCH(time_saxpy).set_name("saxpy").add_int64_axis("size", {1 << 12, 1 << 16, 1 << 20, 1 << 23, 1 << 26});
NVBENCH_BENCH(time_sum).set_name("sum").add_int64_axis("size", {1 << 12, 1 << 16, 1 << 20, 1 << 23, 1 << 26});
NVBENCH_BENCH(time_transpose).set_name("transpose").add_int64_axis("size", {64, 256, 1024, 2048, 4096});
NVBENCH_BENCH(time_matmul).set_name("matmul").add_int64_axis("size", {64, 128, 256, 512, 1024});

NVBENCH_MAIN
