#pragma once

#include <string>
#include <vector>

namespace quipu {

/// Which kernels this process computes with: "avx512", "avx512-vnni", "avx2-vnni", "avx2" or "scalar"; the
/// best that the processor can run, or what the environment variable QUIPU_CPU names. Results do not depend
/// on it. Error(unsupported) if QUIPU_CPU names nothing, or what the processor cannot run.
std::string cpu_kernels();

/// What the machine can do at most, measured with `n_threads` at once.
struct CpuRoofline {
  struct Peak {
    std::string name;       ///< of an instruction, as "int8 avx2-vnni" or "f32 avx512"
    double operations = 0;  ///< per second of all threads; a multiply-add is two
  };
  double read_bytes = 0;    ///< per second of all threads, from memory
  std::vector<Peak> peaks;  ///< of the instructions that the processor has
};
/// Takes some tenths of a second, and 128 MiB for each thread. n_threads is at least 1. Error(out_of_memory).
CpuRoofline measure_cpu_roofline(int n_threads);

}  // namespace quipu
