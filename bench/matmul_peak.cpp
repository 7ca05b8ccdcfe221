// Register-only loops of twelve independent chains: no memory, no dependency that limits them.
#include "matmul_peak.h"

#include <immintrin.h>

#include <cstdio>
#include <ctime>

#include "base/aligned_buffer.h"

namespace quipu::bench {
namespace {

constexpr int kChains = 12;
constexpr long kRounds = 10'000'000;

/// Of this thread's own running, so that others on the machine count little.
double seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Function>
double shortest(Function function) {
  double best = 1e9;
  for (int i = 0; i < 9; ++i) {
    const double begin = seconds();
    function();
    const double taken = seconds() - begin;
    if (taken < best) best = taken;
  }
  return best;
}

#define QUIPU_TWELVE(instruction)                                                                 \
  instruction " %%zmm30, %%zmm31, %%zmm0\n" instruction " %%zmm30, %%zmm31, %%zmm1\n" instruction \
              " %%zmm30, %%zmm31, %%zmm2\n" instruction " %%zmm30, %%zmm31, %%zmm3\n" instruction \
              " %%zmm30, %%zmm31, %%zmm4\n" instruction " %%zmm30, %%zmm31, %%zmm5\n" instruction \
              " %%zmm30, %%zmm31, %%zmm6\n" instruction " %%zmm30, %%zmm31, %%zmm7\n" instruction \
              " %%zmm30, %%zmm31, %%zmm8\n" instruction " %%zmm30, %%zmm31, %%zmm9\n" instruction \
              " %%zmm30, %%zmm31, %%zmm10\n" instruction " %%zmm30, %%zmm31, %%zmm11\n"

#define QUIPU_PEAK(name, instruction)                                                                       \
  void name() {                                                                                             \
    long n = kRounds;                                                                                       \
    asm volatile(                                                                                           \
        "vpxord %%zmm30, %%zmm30, %%zmm30\nvpxord %%zmm31, %%zmm31, %%zmm31\n"                              \
        "1:\n" QUIPU_TWELVE(instruction) "dec %0\njnz 1b\n"                                                 \
        : "+r"(n)::"zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8", "zmm9", "zmm10", \
          "zmm11", "zmm30", "zmm31");                                                                       \
  }
QUIPU_PEAK(dot_int8, "vpdpbusd")
QUIPU_PEAK(dot_bf16, "vdpbf16ps")
QUIPU_PEAK(fma_f32, "vfmadd231ps")

void print_operations(const char* name, void (*loop)(), double operations) {
  std::printf("peak %-12s %7.1f Gop/s\n", name, operations * kChains * kRounds / shortest(loop) * 1e-9);
}

void print_read(const char* name, std::size_t n_streams) {
  AlignedBuffer buffer(std::size_t{256} << 20);
  for (std::size_t i = 0; i < buffer.size(); i += 4096) buffer.bytes()[i] = std::byte{1};
  const std::byte* bytes = buffer.bytes().data();
  const std::size_t length = buffer.size() / n_streams;
  const double taken = shortest([&] {
    __m512i sum = _mm512_setzero_si512();
    for (std::size_t i = 0; i < length; i += 64) {
      for (std::size_t s = 0; s < n_streams; ++s) {
        sum = _mm512_xor_si512(sum, _mm512_load_si512(bytes + s * length + i));
      }
    }
    asm volatile("" ::"v"(sum));
  });
  std::printf("read %-12s %7.1f GB/s\n", name, static_cast<double>(buffer.size()) / taken * 1e-9);
}

}  // namespace

void print_peaks() {
  print_operations("int8 dot", dot_int8, 128);
  print_operations("bf16 dot", dot_bf16, 64);
  print_operations("f32 fma", fma_f32, 32);
  print_read("one stream", 1);
  print_read("two streams", 2);
}

}  // namespace quipu::bench
