// What the tools of compute-sanitizer report of a program without this library, so that the reports of `tests/engine/sanitize`
// can be told from faults of it:
//
//     nvcc -arch=native -o others tests/engine/sanitize.cu -lcublasLt
//     compute-sanitizer --tool initcheck ./others products
//     compute-sanitizer --tool racecheck ./others products
//     compute-sanitizer --tool racecheck ./others threads
//
// `products` multiplies matrices by each algorithm that cuBLASLt proposes, with operands that are written before and a workspace
// that is not. `threads` launches from eight threads on one stream.
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#define CHECK(call)                                                              \
    do {                                                                         \
        const int status = static_cast<int>(call);                               \
        if (status != 0) {                                                       \
            std::fprintf(stderr, "%s: status %d\n", #call, status);              \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

constexpr size_t WORKSPACE = 32 << 20;
constexpr int PROPOSED = 8;

struct Type {
    const char *name;
    cudaDataType_t type;
    size_t bytes;
};

struct Sizes {
    uint64_t m, k, n;
};

static int multiply(cublasLtHandle_t blas, const Type &type, const Sizes &sizes, void *workspace) {
    const auto [m, k, n] = sizes;
    cublasLtMatmulDesc_t operation;
    CHECK(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    cublasLtMatrixLayout_t first, second, out;
    CHECK(cublasLtMatrixLayoutCreate(&first, type.type, n, k, n));
    CHECK(cublasLtMatrixLayoutCreate(&second, type.type, k, m, k));
    CHECK(cublasLtMatrixLayoutCreate(&out, type.type, n, m, n));
    cublasLtMatmulPreference_t preference;
    CHECK(cublasLtMatmulPreferenceCreate(&preference));
    CHECK(cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &WORKSPACE, sizeof WORKSPACE));
    void *a, *b, *c;
    CHECK(cudaMalloc(&a, m * k * type.bytes));
    CHECK(cudaMalloc(&b, k * n * type.bytes));
    CHECK(cudaMalloc(&c, m * n * type.bytes));
    CHECK(cudaMemset(a, 0, m * k * type.bytes));
    CHECK(cudaMemset(b, 0, k * n * type.bytes));
    cublasLtMatmulHeuristicResult_t found[PROPOSED];
    int count = 0;
    CHECK(cublasLtMatmulAlgoGetHeuristic(blas, operation, first, second, out, out, preference, PROPOSED, found, &count));
    const float one = 1, zero = 0;
    for (int place = 0; place < count; ++place) {
        CHECK(cublasLtMatmul(blas, operation, &one, b, first, a, second, &zero, c, out, c, out, &found[place].algo,
                             workspace, found[place].workspaceSize, nullptr));
        CHECK(cudaDeviceSynchronize());
    }
    for (void *memory : {a, b, c}) CHECK(cudaFree(memory));
    CHECK(cublasLtMatmulPreferenceDestroy(preference));
    for (auto layout : {first, second, out}) CHECK(cublasLtMatrixLayoutDestroy(layout));
    CHECK(cublasLtMatmulDescDestroy(operation));
    return count;
}

static void products() {
    cublasLtHandle_t blas;
    CHECK(cublasLtCreate(&blas));
    void *workspace;
    CHECK(cudaMalloc(&workspace, WORKSPACE));
    for (const Type &type : {Type{"fp16", CUDA_R_16F, 2}, Type{"bf16", CUDA_R_16BF, 2}, Type{"fp32", CUDA_R_32F, 4}}) {
        for (const Sizes &sizes : {Sizes{1, 1, 1}, Sizes{33, 65, 17}, Sizes{40, 72, 40}, Sizes{64, 1000, 8},
                                   Sizes{256, 256, 256}, Sizes{7, 4096, 5}, Sizes{1024, 1024, 1024}}) {
            std::printf("%s %llu x %llu x %llu\n", type.name, (unsigned long long)sizes.m, (unsigned long long)sizes.k,
                        (unsigned long long)sizes.n);
            std::fflush(stdout);
            std::printf("  %d algorithms\n", multiply(blas, type, sizes, workspace));
        }
    }
    CHECK(cudaFree(workspace));
    CHECK(cublasLtDestroy(blas));
}

__global__ void add(float *x, int count) {
    const int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place < count) x[place] += 1;
}

static void threads() {
    constexpr int COUNT = 4096, THREADS = 8, LAUNCHES = 200;
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *x;
    CHECK(cudaMalloc(&x, COUNT * sizeof *x));
    CHECK(cudaMemset(x, 0, COUNT * sizeof *x));
    std::vector<std::thread> all;
    for (int thread = 0; thread < THREADS; ++thread) {
        all.emplace_back([=] {
            for (int launch = 0; launch < LAUNCHES; ++launch) {
                add<<<COUNT / 256, 256, 0, stream>>>(x, COUNT);
                CHECK(cudaGetLastError());
            }
        });
    }
    for (auto &thread : all) thread.join();
    float first;
    CHECK(cudaMemcpyAsync(&first, x, sizeof first, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    std::printf("%.0f of %d launches\n", first, THREADS * LAUNCHES);
    CHECK(cudaFree(x));
    CHECK(cudaStreamDestroy(stream));
}

int main(int count, char **arguments) {
    if (count == 2 && std::strcmp(arguments[1], "products") == 0) {
        products();
    } else if (count == 2 && std::strcmp(arguments[1], "threads") == 0) {
        threads();
    } else {
        std::fprintf(stderr, "usage: %s products|threads\n", arguments[0]);
        return 2;
    }
}
