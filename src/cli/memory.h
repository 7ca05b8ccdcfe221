// How much memory this process takes, as the system counts it.
#pragma once

#include <cstdint>

namespace quipu::cli {

/// Bytes resident at most, since the process began or since reset_peak_memory() where the system can do that.
std::uint64_t peak_memory();
void reset_peak_memory();

}  // namespace quipu::cli
