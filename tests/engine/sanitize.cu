// What the tools of compute-sanitizer report of a program without this library, so that the reports of `tests/engine/sanitize`
// can be told from faults of it:
//
//     nvcc -arch=native -o others tests/engine/sanitize.cu -lcublasLt
//     compute-sanitizer --tool initcheck ./others products
//     compute-sanitizer --tool initcheck ./others plain
//     compute-sanitizer --tool initcheck ./others bulk
//     compute-sanitizer --tool racecheck ./others products
//     compute-sanitizer --tool racecheck ./others threads
//
// `products` multiplies matrices of ones by each algorithm that cuBLASLt proposes, with a workspace that nothing has written,
// and reads each product back. `plain` and `bulk` fill an array and read it back, the first by ordinary stores, the second by
// the bulk copies of Hopper and later, with which cuBLASLt's kernels write there. `threads` launches from eight threads on one
// stream. Each looks at what it read: memory that the tool takes for unwritten was written.
#include <cublasLt.h>
#include <cuda.h>
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
constexpr int PROPOSED = 4;

struct Type {
    const char *name;
    cudaDataType_t type;
    size_t bytes;
    uint32_t one;
};

struct Sizes {
    uint64_t m, k, n;
};

// Whether each element is the same and not zero, as in a product of ones.
static bool is_filled(const std::vector<char> &elements, size_t bytes) {
    bool is_filled = false;
    for (size_t place = 0; place < bytes; ++place) is_filled = is_filled || elements[place] != 0;
    for (size_t place = bytes; place < elements.size(); ++place) {
        is_filled = is_filled && elements[place] == elements[place - bytes];
    }
    return is_filled;
}

static void multiply(cublasLtHandle_t blas, const Type &type, const Sizes &sizes, void *workspace) {
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
    const uint32_t reductions =
        type.bytes == 4 ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    CHECK(cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions));
    std::vector<char> ones(k * (m > n ? m : n) * type.bytes), product(m * n * type.bytes);
    for (size_t place = 0; place < ones.size(); place += type.bytes) std::memcpy(&ones[place], &type.one, type.bytes);
    cublasLtMatmulHeuristicResult_t found[PROPOSED];
    int count = 0;
    CHECK(cublasLtMatmulAlgoGetHeuristic(blas, operation, first, second, out, out, preference, PROPOSED, found, &count));
    const float one = 1, zero = 0;
    void *a, *b, *c;
    CHECK(cudaMalloc(&a, m * k * type.bytes));
    CHECK(cudaMalloc(&b, k * n * type.bytes));
    CHECK(cudaMemcpy(a, ones.data(), m * k * type.bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b, ones.data(), k * n * type.bytes, cudaMemcpyHostToDevice));
    for (int place = 0; place < count; ++place) {
        std::printf("%s %llu x %llu x %llu, algorithm %d\n", type.name, (unsigned long long)m, (unsigned long long)k,
                    (unsigned long long)n, place);
        std::fflush(stdout);
        CHECK(cudaMalloc(&c, product.size()));
        CHECK(cublasLtMatmul(blas, operation, &one, b, first, a, second, &zero, c, out, c, out, &found[place].algo,
                             workspace, found[place].workspaceSize, nullptr));
        CHECK(cudaMemcpy(product.data(), c, product.size(), cudaMemcpyDeviceToHost));
        // The memory that the next algorithm is given may be this, which shall hold no product.
        CHECK(cudaMemset(c, 0, product.size()));
        CHECK(cudaFree(c));
        if (!is_filled(product, type.bytes)) {
            std::fprintf(stderr, "the product was not written\n");
            std::exit(1);
        }
    }
    for (void *memory : {a, b}) CHECK(cudaFree(memory));
    CHECK(cublasLtMatmulPreferenceDestroy(preference));
    for (auto layout : {first, second, out}) CHECK(cublasLtMatrixLayoutDestroy(layout));
    CHECK(cublasLtMatmulDescDestroy(operation));
}

static void products() {
    cublasLtHandle_t blas;
    CHECK(cublasLtCreate(&blas));
    void *workspace;
    CHECK(cudaMalloc(&workspace, WORKSPACE));
    for (const Type &type : {Type{"fp16", CUDA_R_16F, 2, 0x3c00}, Type{"bf16", CUDA_R_16BF, 2, 0x3f80},
                             Type{"fp32", CUDA_R_32F, 4, 0x3f800000}}) {
        for (const Sizes &sizes : {Sizes{3, 127, 1}, Sizes{37, 1000, 5}, Sizes{64, 64, 64}, Sizes{129, 65, 33},
                                   Sizes{8, 30000, 8}, Sizes{64, 16384, 32}, Sizes{1, 20001, 16}}) {
            multiply(blas, type, sizes, workspace);
        }
    }
    CHECK(cudaFree(workspace));
    CHECK(cublasLtDestroy(blas));
}

constexpr int TILE = 256, TILES = 64;

__global__ void plain_fill(float *out) { out[blockIdx.x * TILE + threadIdx.x] = 1; }

__global__ void bulk_fill(const __grid_constant__ CUtensorMap out) {
#if __CUDA_ARCH__ >= 900
    __shared__ alignas(128) float tile[TILE];
    tile[threadIdx.x] = 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&out),
                     "r"(0), "r"(blockIdx.x), "r"(static_cast<unsigned>(__cvta_generic_to_shared(tile)))
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
#endif
}

static void fill(bool in_bulk) {
    void *memory;
    CHECK(cudaMalloc(&memory, TILE * TILES * sizeof(float)));
    if (in_bulk) {
        void *encode;
        cudaDriverEntryPointQueryResult found;
        CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found));
        CHECK(found);
        CUtensorMap map;
        const cuuint64_t sizes[] = {TILE, TILES}, strides[] = {TILE * sizeof(float)};
        const cuuint32_t box[] = {TILE, 1}, steps[] = {1, 1};
        CHECK(reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
            &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, memory, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
            CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
        bulk_fill<<<TILES, TILE>>>(map);
    } else {
        plain_fill<<<TILES, TILE>>>(static_cast<float *>(memory));
    }
    CHECK(cudaGetLastError());
    std::vector<float> values(TILE * TILES);
    CHECK(cudaMemcpy(values.data(), memory, values.size() * sizeof(float), cudaMemcpyDeviceToHost));
    int written = 0;
    for (float value : values) written += value == 1;
    std::printf("%d of %d elements were written\n", written, TILE * TILES);
    CHECK(cudaFree(memory));
    if (written != TILE * TILES) std::exit(1);
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
    const char *what = count == 2 ? arguments[1] : "";
    if (std::strcmp(what, "products") == 0) {
        products();
    } else if (std::strcmp(what, "plain") == 0 || std::strcmp(what, "bulk") == 0) {
        fill(std::strcmp(what, "bulk") == 0);
    } else if (std::strcmp(what, "threads") == 0) {
        threads();
    } else {
        std::fprintf(stderr, "usage: %s products|plain|bulk|threads\n", arguments[0]);
        return 2;
    }
}
