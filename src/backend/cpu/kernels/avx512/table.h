// The kernels for AVX-512 F, BW, DQ, VL, VNNI and BF16. Files of this folder are compiled for that processor:
// they must not run, nor instantiate inline functions that other files share, before kernels/dispatch.cpp has
// asked for it.
#pragma once

#include "backend/cpu/kernels/kernels.h"

namespace quipu::cpu::avx512 {

extern const KernelTable kTable;

}  // namespace quipu::cpu::avx512
