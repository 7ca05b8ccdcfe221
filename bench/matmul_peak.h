// The processor's own limits, measured: what the products of matmul_bench are held against.
#pragma once

namespace quipu::bench {

/// Prints, for one thread: clock-bound rates of the multiply instructions (operations per second) and of
/// reading memory. Needs AVX-512 VNNI and BF16.
void print_peaks();

}  // namespace quipu::bench
