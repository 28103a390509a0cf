// y += a · x. The lines below say how to launch it, for `cargo run --release -- bench kernels/saxpy.cu`.
// syncscope:
//   kernel: saxpy
//   axes: { elements: [65536, 16777216] }
//   grid: elements / 256
//   block: 256
//   arguments: [{ tensor: elements }, { tensor: elements, fill: 1 }, { scalar: 0.5, type: fp32 },
//     { scalar: elements, type: u32 }]
//   bytes: 12 * elements
//   operations: 2 * elements
//   check: { argument: 1, value: 0.5 }
extern "C" __global__ void saxpy(float* y, const float* x, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
