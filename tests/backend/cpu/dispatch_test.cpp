// The choice of a table of kernels.
#include "backend/cpu/kernels/dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/cpu_features.h"
#include "base/error.h"

namespace quipu::cpu {
namespace {

bool can_run(std::string_view name) {
  const auto tables = runnable_kernels();
  return std::any_of(tables.begin(), tables.end(),
                     [&](const KernelTable* table) { return table->name == name; });
}

TEST(KernelDispatch, ATableIsFoundByItsName) {
  for (const KernelTable* table : runnable_kernels()) EXPECT_EQ(&choose_kernels(table->name), table);
}

TEST(KernelDispatch, ScalarCanAlwaysBeAskedFor) {
  EXPECT_EQ(choose_kernels("scalar").name, "scalar");
}

TEST(KernelDispatch, TheBestTableIsTheDefault) {
  EXPECT_EQ(&choose_kernels(""), runnable_kernels().front());
  EXPECT_EQ(runnable_kernels().back(), &scalar_kernels());
}

TEST(KernelDispatch, TablesNeedTheirExtensions) {
  const CpuFeatures& features = cpu_features();
  EXPECT_EQ(can_run("avx512"), features.avx512_vnni && features.avx512_bf16);
  EXPECT_EQ(can_run("avx512-vnni"), features.avx512_vnni);
  EXPECT_EQ(can_run("avx2-vnni"), features.avx_vnni || features.avx512_vnni);
  EXPECT_EQ(can_run("avx2"), features.avx2);
}

TEST(KernelDispatch, ATableThatTheProcessorLacksIsRefused) {
  if (can_run("avx512")) GTEST_SKIP() << "this processor runs all tables";
  EXPECT_THROW(choose_kernels("avx512"), Error);
}

TEST(KernelDispatch, AnUnknownNameIsRefusedAndNamed) {
  try {
    choose_kernels("sse9");
    FAIL() << "an unknown name was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.message(), testing::HasSubstr("'sse9' (there are"));
    EXPECT_THAT(error.message(), testing::HasSubstr("avx2-vnni"));
  }
}

// Each in a process of its own, since a process chooses once.
TEST(KernelDispatchDeathTest, TheEnvironmentNamesATable) {
  const auto choose = [] {
    setenv("QUIPU_CPU", "scalar", 1);
    std::exit(kernels().name == "scalar" ? 0 : 1);
  };
  EXPECT_EXIT(choose(), testing::ExitedWithCode(0), "");
}

TEST(KernelDispatchDeathTest, AnUnknownNameInTheEnvironmentIsRefusedEachTime) {
  const auto choose = [] {
    setenv("QUIPU_CPU", "sse9", 1);
    int refused = 0;
    for (int i = 0; i < 2; ++i) {
      try {
        kernels();
      } catch (const Error&) {
        ++refused;
      }
    }
    std::exit(refused);
  };
  EXPECT_EXIT(choose(), testing::ExitedWithCode(2), "");
}

TEST(KernelDispatch, TablesHaveEveryFunction) {
  for (const KernelTable* table : runnable_kernels()) {
    // Nothing but functions follows the name.
    const auto* functions = reinterpret_cast<const std::uintptr_t*>(&table->matmul);
    const std::size_t count = (sizeof *table - offsetof(KernelTable, matmul)) / sizeof *functions;
    for (std::size_t i = 0; i < count; ++i) EXPECT_NE(functions[i], 0u) << table->name << ", function " << i;
  }
}

}  // namespace
}  // namespace quipu::cpu
