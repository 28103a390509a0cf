// Four kernels of the kinds that users bring.

extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

// Sums in blocks of 256, then one atomic addition each.
extern "C" __global__ void sum(const float* x, float* out, unsigned n) {
    __shared__ float part[256];
    float own = 0.0f;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) own += x[i];
    part[threadIdx.x] = own;
    for (unsigned half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) atomicAdd(out, part[0]);
}

// Tiles of 32 by 32, in blocks of 32 by 8.
extern "C" __global__ void transpose(const float* x, float* y, unsigned n) {
    __shared__ float tile[32][33];
    unsigned column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (unsigned j = 0; j < 32; j += 8)
        if (column < n && row + j < n) tile[threadIdx.y + j][threadIdx.x] = x[(row + j) * n + column];
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
    for (unsigned j = 0; j < 32; j += 8)
        if (column < n && row + j < n) y[(row + j) * n + column] = tile[threadIdx.x][threadIdx.y + j];
}

// A thread an element, in blocks of 16 by 16; n is a multiple of 16.
extern "C" __global__ void matmul(const float* a, const float* b, float* c, unsigned n) {
    __shared__ float left[16][16], right[16][16];
    unsigned column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    float sum = 0.0f;
    for (unsigned k = 0; k < n; k += 16) {
        left[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
        __syncthreads();
        for (unsigned i = 0; i < 16; i++) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
