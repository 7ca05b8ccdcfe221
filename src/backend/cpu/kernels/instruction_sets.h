// What each folder of kernels gives: parts of a KernelTable, which dispatch.cpp puts together. Contracts of
// the functions in a table are in kernels.h and attention.h, and nothing else declares them.
//
// Files of a folder are compiled for its instruction set: nothing of them may run before dispatch.cpp has
// asked the processor.
#pragma once

#include "backend/cpu/kernels/kernels.h"

namespace quipu::cpu {

/// The reference.
namespace scalar {
MatmulKernel matmul_kernel(ElementType type);  ///< null for a type that is not decodable
QuantizeKernel quantize_kernel(ActivationFormat format);
void add_row_operations(KernelTable& table);
void add_attention(KernelTable& table);
void add_cell_storage(KernelTable& table);
}  // namespace scalar

/// AVX2 with FMA and F16C.
namespace avx2 {
MatmulKernel matmul_kernel(ElementType type);
MatmulKernel vnni_matmul_kernel(ElementType type);       ///< for AVX-VNNI
MatmulKernel evex_vnni_matmul_kernel(ElementType type);  ///< for the same instructions of AVX-512 VNNI and VL
QuantizeKernel quantize_kernel(ActivationFormat format);
void add_row_operations(KernelTable& table);
void add_attention(KernelTable& table);
void add_cell_storage(KernelTable& table);
}  // namespace avx2

/// AVX-512 F, BW, DQ, VL and VNNI.
namespace avx512 {
MatmulKernel matmul_kernel(ElementType type);  ///< that for BF16 needs AVX-512 BF16
QuantizeKernel quantize_kernel(ActivationFormat format);
void add_row_operations(KernelTable& table);
void add_attention(KernelTable& table);
void add_cell_storage(KernelTable& table);
}  // namespace avx512

}  // namespace quipu::cpu
