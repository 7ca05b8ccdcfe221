// What the library says about the processor.
#include "quipu/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quipu {
namespace {

TEST(CpuKernels, HaveOneOfTheNames) {
  EXPECT_THAT(cpu_kernels(), testing::AnyOf("avx512", "avx512-vnni", "avx2-vnni", "avx2", "scalar"));
}

TEST(CpuRoofline, IsOfTheOrderOfAComputer) {
  const CpuRoofline roofline = measure_cpu_roofline(1);
  EXPECT_GT(roofline.read_bytes, 1e8);
  EXPECT_LT(roofline.read_bytes, 1e13);
  for (const CpuRoofline::Peak& peak : roofline.peaks) {
    EXPECT_GT(peak.operations, 1e9) << peak.name;
    EXPECT_LT(peak.operations, 1e15) << peak.name;
  }
}

}  // namespace
}  // namespace quipu
