// Loops over registers alone, of twelve independent chains, so that neither memory nor latency limits them;
// and loops over more memory than caches hold.
#include "backend/cpu/kernels/roofline.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/aligned_buffer.h"
#include "base/cpu_features.h"
#include "base/thread_pool.h"

namespace quipu::cpu {
namespace {

constexpr int kTries = 5;

/// Seconds that all threads take for `work(thread)`, at best.
template <typename Work>
double shortest(WorkerPool& pool, Work work) {
  double best = 1e9;
  for (int i = 0; i < kTries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    pool.run(pool.size(), work);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count());
  }
  return best;
}

// -- memory

constexpr std::size_t kBytesOfThread = std::size_t{128} << 20;

/// As `n_streams` streams side by side.
void read_all(std::span<const std::uint64_t> words, std::size_t n_streams) {
  constexpr std::size_t kLine = 8;
  const std::size_t length = words.size() / n_streams;
  std::uint64_t sums[kLine] = {};
  for (std::size_t i = 0; i < length; i += kLine) {
    for (std::size_t s = 0; s < n_streams; ++s) {
      for (std::size_t j = 0; j < kLine; ++j) sums[j] ^= words[s * length + i + j];
    }
  }
  for (const std::uint64_t& sum : sums) asm volatile("" ::"m"(sum));
}

double measure_reading(WorkerPool& pool) {
  const std::size_t n_threads = pool.size();
  AlignedBuffer memory(n_threads * kBytesOfThread);
  const auto part = [&](unsigned thread) {
    return memory.bytes().subspan(thread * kBytesOfThread, kBytesOfThread);
  };
  pool.run(pool.size(), [&](unsigned thread) { std::ranges::fill(part(thread), std::byte{1}); });
  double seconds = 1e9;
  for (const std::size_t n_streams : {1u, 4u}) {
    seconds = std::min(
        seconds, shortest(pool, [&](unsigned thread) {
          const std::span<std::byte> bytes = part(thread);
          read_all({reinterpret_cast<const std::uint64_t*>(bytes.data()), bytes.size() / 8}, n_streams);
        }));
  }
  return static_cast<double>(memory.size()) / seconds;
}

// -- arithmetic

#if defined(__x86_64__)
constexpr long kRounds = 1'000'000;
constexpr int kChains = 12;

// clang-format off
#define QUIPU_CHAINS(instruction, r)                                                                              \
  instruction " %%" r "12, %%" r "13, %%" r "0\n" instruction " %%" r "12, %%" r "13, %%" r "1\n"                 \
  instruction " %%" r "12, %%" r "13, %%" r "2\n" instruction " %%" r "12, %%" r "13, %%" r "3\n"                 \
  instruction " %%" r "12, %%" r "13, %%" r "4\n" instruction " %%" r "12, %%" r "13, %%" r "5\n"                 \
  instruction " %%" r "12, %%" r "13, %%" r "6\n" instruction " %%" r "12, %%" r "13, %%" r "7\n"                 \
  instruction " %%" r "12, %%" r "13, %%" r "8\n" instruction " %%" r "12, %%" r "13, %%" r "9\n"                 \
  instruction " %%" r "12, %%" r "13, %%" r "10\n" instruction " %%" r "12, %%" r "13, %%" r "11\n"

#define QUIPU_PEAK(name, instruction, r)                                                                          \
  void name() {                                                                                                   \
    long n = kRounds;                                                                                             \
    asm volatile("vzeroall\n1:\n" QUIPU_CHAINS(instruction, r) "dec %0\njnz 1b\nvzeroupper\n"                     \
                 : "+r"(n)::"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",       \
                 "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc");                                     \
  }
// clang-format on

QUIPU_PEAK(int8_avx512, "vpdpbusd", "zmm")
QUIPU_PEAK(bf16_avx512, "vdpbf16ps", "zmm")
QUIPU_PEAK(f32_avx512, "vfmadd231ps", "zmm")
QUIPU_PEAK(int8_avx2_vnni, "%{vex%} vpdpbusd", "ymm")
QUIPU_PEAK(int8_evex_vnni, "%{evex%} vpdpbusd", "ymm")
QUIPU_PEAK(int8_avx2, "vpmaddubsw", "ymm")
QUIPU_PEAK(f32_avx2, "vfmadd231ps", "ymm")

struct Loop {
  bool can_run;
  std::string_view name;
  void (*run)();
  double operations;  ///< of an instruction
};

std::vector<Loop> loops() {
  const CpuFeatures& has = cpu_features();
  return {{has.avx512_vnni, "int8 avx512", int8_avx512, 128},
          {has.avx512_bf16, "bf16 avx512", bf16_avx512, 64},
          {has.avx512, "f32 avx512", f32_avx512, 32},
          {has.avx_vnni, "int8 avx2-vnni", int8_avx2_vnni, 64},
          {!has.avx_vnni && has.avx512_vnni, "int8 avx2-vnni", int8_evex_vnni, 64},
          {has.avx2, "int8 avx2", int8_avx2, 64},  // leaves their sums to others
          {has.avx2, "f32 avx2", f32_avx2, 16}};
}

std::vector<Peak> measure_arithmetic(WorkerPool& pool) {
  std::vector<Peak> peaks;
  for (const Loop& loop : loops()) {
    if (!loop.can_run) continue;
    const double seconds = shortest(pool, [&](unsigned) { loop.run(); });
    peaks.push_back({loop.name, pool.size() * loop.operations * kChains * kRounds / seconds});
  }
  return peaks;
}
#else
std::vector<Peak> measure_arithmetic(WorkerPool&) {
  return {};
}
#endif

}  // namespace

Roofline measure_roofline(unsigned n_threads) {
  WorkerPool pool(n_threads);
  return {measure_reading(pool), measure_arithmetic(pool)};
}

}  // namespace quipu::cpu
