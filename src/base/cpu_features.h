// What the processor we run on can do, and how many processors we may use. Kernels are chosen by these
// figures at run time; nothing else in Quipu asks the processor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace quipu {

/// Instruction sets that kernels are dispatched on. A set counts only if the operating system saves its
/// registers. All false on processors other than x86-64.
struct CpuFeatures {
  bool avx2 = false;         ///< AVX2, FMA and F16C
  bool avx_vnni = false;     ///< the 256-bit VEX form of VNNI
  bool avx512 = false;       ///< AVX-512 F, BW, VL and DQ; implies avx2
  bool avx512_vnni = false;  ///< implies avx512, as do the next two
  bool avx512_bf16 = false;
  bool avx512_vbmi = false;
  bool gfni = false;  ///< usable at 256 bits; at 512 bits where avx512 is true as well

  bool operator==(const CpuFeatures&) const = default;
};

/// Of this processor; read once.
const CpuFeatures& cpu_features();

/// The raw answers of an x86 processor: CPUID leaf 1 (ecx), leaf 7 subleaf 0 (ebx, ecx), leaf 7 subleaf 1
/// (eax), and XCR0 (which register states the system saves). Zero for a leaf that does not exist.
struct X86Registers {
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf7_ebx = 0;
  std::uint32_t leaf7_ecx = 0;
  std::uint32_t leaf7_1_eax = 0;
  std::uint64_t xcr0 = 0;
};
CpuFeatures decode_x86_features(const X86Registers& registers);

/// Processors that this thread may run on at once, at least 1: the affinity mask, or the container's CPU
/// quota where that is less.
unsigned available_cpus();

/// The CPU quota (rounded up to whole processors) that control groups of version 1 or 2 put on this process;
/// nothing if there is none. `root` is where /proc and /sys are looked for: another folder in tests.
std::optional<unsigned> cgroup_cpu_quota(const std::string& root = "");

}  // namespace quipu
