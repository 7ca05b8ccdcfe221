// Which table of kernels to use. Apart from kernels(), for tests and tools that compare tables.
#pragma once

#include <string_view>
#include <vector>

#include "backend/cpu/kernels/kernels.h"

namespace quipu::cpu {

/// Those that this processor can run, the best first, the scalar reference last.
std::vector<const KernelTable*> runnable_kernels();

/// The table of that name, or the best that the processor supports for an empty name. Throws
/// Error(unsupported) for an unknown name and for one that the processor cannot run.
const KernelTable& choose_kernels(std::string_view name);

}  // namespace quipu::cpu
