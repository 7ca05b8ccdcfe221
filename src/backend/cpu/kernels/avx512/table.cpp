// The list of this instruction set's kernels; itself compiled for any processor.
#include "backend/cpu/kernels/avx512/table.h"

#include "backend/cpu/kernels/avx512/matmul.h"
#include "backend/cpu/kernels/avx512/row_ops.h"

namespace quipu::cpu::avx512 {

constinit const KernelTable kTable = {
    .name = "avx512",
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

}  // namespace quipu::cpu::avx512
