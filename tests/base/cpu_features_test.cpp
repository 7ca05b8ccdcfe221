// Decoding of CPUID words from the processors' manuals, and CPU quotas from made-up control groups.
#include "base/cpu_features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "support/files.h"

namespace quipu {
namespace {

constexpr std::uint32_t bit(unsigned n) {
  return std::uint32_t{1} << n;
}

/// A processor with all that we ask for, under a system that saves all registers.
X86Registers everything() {
  return {.leaf1_ecx = bit(12) | bit(27) | bit(28) | bit(29),
          .leaf7_ebx = bit(5) | bit(16) | bit(17) | bit(30) | bit(31),
          .leaf7_ecx = bit(1) | bit(8) | bit(11),
          .leaf7_1_eax = bit(4) | bit(5),
          .xcr0 = 0xe7};
}

constexpr CpuFeatures kAll{.avx2 = true,
                           .avx_vnni = true,
                           .avx512 = true,
                           .avx512_vnni = true,
                           .avx512_bf16 = true,
                           .avx512_vbmi = true,
                           .gfni = true};

TEST(CpuFeatures, AreAllThereOnAProcessorThatHasThem) {
  EXPECT_EQ(decode_x86_features(everything()), kAll);
}

TEST(CpuFeatures, AreAbsentWhereTheProcessorSaysNothing) {
  EXPECT_EQ(decode_x86_features({}), CpuFeatures{});
}

TEST(CpuFeatures, AreAbsentWhereTheSystemDoesNotSaveTheRegisters) {
  X86Registers registers = everything();
  registers.xcr0 = 0x3;
  EXPECT_EQ(decode_x86_features(registers), CpuFeatures{});
}

TEST(CpuFeatures, LeaveOutAvx512WhereTheSystemSavesOnlyAvxRegisters) {
  X86Registers registers = everything();
  registers.xcr0 = 0x7;
  const CpuFeatures expected{.avx2 = true, .avx_vnni = true, .gfni = true};
  EXPECT_EQ(decode_x86_features(registers), expected);
}

TEST(CpuFeatures, LeaveOutAvx512WhereOneOfItsPartsIsMissing) {
  for (const unsigned part : {16u, 17u, 30u, 31u}) {
    X86Registers registers = everything();
    registers.leaf7_ebx &= ~bit(part);
    EXPECT_FALSE(decode_x86_features(registers).avx512) << part;
    EXPECT_FALSE(decode_x86_features(registers).avx512_vnni) << part;
  }
}

TEST(CpuFeatures, CountAvx2OnlyTogetherWithFmaAndF16c) {
  for (const unsigned part : {12u, 29u}) {
    X86Registers registers = everything();
    registers.leaf1_ecx &= ~bit(part);
    EXPECT_EQ(decode_x86_features(registers), CpuFeatures{}) << part;
  }
}

#if defined(__x86_64__) && defined(__GNUC__)
TEST(CpuFeatures, AgreeWithTheCompilersOwnDetection) {
  EXPECT_EQ(cpu_features().avx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ(cpu_features().avx512_vnni,
            __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw"));
}
#endif

TEST(AvailableCpus, AreAtLeastOneAndNoMoreThanTheMachineHas) {
  EXPECT_GE(available_cpus(), 1u);
  EXPECT_LE(available_cpus(), std::max(1u, std::thread::hardware_concurrency()));
}

class CgroupCpuQuota : public ::testing::Test {
 protected:
  void put(std::string_view path, std::string_view text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    test::write_text(root_ / path, text);
  }
  std::optional<unsigned> quota() const { return cgroup_cpu_quota(root_.path().string()); }

  test::TempDir root_;
};

TEST_F(CgroupCpuQuota, IsAbsentWithoutControlGroups) {
  EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(CgroupCpuQuota, OfVersionTwoIsRoundedUp) {
  put("proc/self/cgroup", "0::/user/job\n");
  put("sys/fs/cgroup/user/job/cpu.max", "250000 100000\n");
  EXPECT_EQ(quota(), 3u);
}

TEST_F(CgroupCpuQuota, OfAnAncestorCountsWhereItIsLess) {
  put("proc/self/cgroup", "0::/user/job\n");
  put("sys/fs/cgroup/user/job/cpu.max", "800000 100000\n");
  put("sys/fs/cgroup/user/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2u);
}

TEST_F(CgroupCpuQuota, IsAbsentWhereVersionTwoSaysMax) {
  put("proc/self/cgroup", "0::/\n");
  put("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(CgroupCpuQuota, OfVersionOneIsFoundUnderTheMountRootOfAContainer) {
  put("proc/self/cgroup", "3:cpuset:/docker/abc\n2:cpu,cpuacct:/docker/abc\n");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "100000\n");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 1u);
}

TEST_F(CgroupCpuQuota, IsAbsentWhereVersionOneSaysMinusOne) {
  put("proc/self/cgroup", "2:cpu:/\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(CgroupCpuQuota, IgnoresFilesThatMakeNoSense) {
  put("proc/self/cgroup", "nonsense\n0::/\n");
  put("sys/fs/cgroup/cpu.max", "lots 0\n");
  EXPECT_EQ(quota(), std::nullopt);
}

}  // namespace
}  // namespace quipu
