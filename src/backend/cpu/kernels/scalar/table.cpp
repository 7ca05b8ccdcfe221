// The list of the reference kernels.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/scalar/matmul.h"
#include "backend/cpu/kernels/scalar/row_ops.h"

namespace quipu::cpu {
namespace scalar {
namespace {

constinit const KernelTable kTable = {
    .name = "scalar",
    .matmul = matmul_kernel,
    .quantize = quantize_kernel,
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .rope = rope,
    .add = add,
    .multiply = multiply,
    .scale = scale,
    .gate = gate,
    .activate = activate,
    .soft_cap = soft_cap,
    .clamp = clamp,
    .softmax = softmax,
    .sigmoid = sigmoid,
    .accumulate = accumulate,
    .attention = attention,
    .store_cell = store_cell,
    .encode_cells = encode_cells,
};

}  // namespace
}  // namespace scalar

const KernelTable& scalar_kernels() {
  return scalar::kTable;
}

}  // namespace quipu::cpu
