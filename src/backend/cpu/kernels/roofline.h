// What this machine can do at most, measured: the figures that speeds are held against.
#pragma once

#include <string_view>
#include <vector>

namespace quipu::cpu {

struct Peak {
  std::string_view name;  ///< of an instruction, as "int8 avx2-vnni"
  double operations;      ///< per second of all threads; a multiply-add is two
};

struct Roofline {
  double read_bytes = 0;    ///< per second of all threads, from memory
  std::vector<Peak> peaks;  ///< of the instructions that this processor has
};

/// With n_threads at once; takes some tenths of a second, and 128 MiB for each thread.
/// Error(out_of_memory).
Roofline measure_roofline(unsigned n_threads);

}  // namespace quipu::cpu
