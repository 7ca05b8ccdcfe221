// The choice of a table of kernels.
#include "backend/cpu/kernels/dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/cpu_features.h"
#include "base/error.h"

namespace quipu::cpu {
namespace {

TEST(KernelDispatch, ScalarCanAlwaysBeAskedFor) {
  EXPECT_EQ(choose_kernels("scalar").name, "scalar");
}

TEST(KernelDispatch, TheBestTableIsTheDefault) {
  EXPECT_EQ(&choose_kernels(""), avx512_kernels() != nullptr ? avx512_kernels() : &scalar_kernels());
}

TEST(KernelDispatch, Avx512NeedsItsExtensions) {
  const CpuFeatures& features = cpu_features();
  EXPECT_EQ(avx512_kernels() != nullptr, features.avx512 && features.avx512_vnni && features.avx512_bf16);
}

TEST(KernelDispatch, ATableThatTheProcessorLacksIsRefused) {
  if (avx512_kernels() != nullptr) GTEST_SKIP() << "this processor runs all tables";
  EXPECT_THROW(choose_kernels("avx512"), Error);
}

TEST(KernelDispatch, AnUnknownNameIsRefusedAndNamed) {
  try {
    choose_kernels("sse9");
    FAIL() << "an unknown name was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.message(), testing::HasSubstr("'sse9'"));
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
  for (const KernelTable* table : {&scalar_kernels(), avx512_kernels()}) {
    if (table == nullptr) continue;
    EXPECT_NE(table->matmul, nullptr) << table->name;
    EXPECT_NE(table->quantize, nullptr) << table->name;
    EXPECT_NE(table->softmax, nullptr) << table->name;
    EXPECT_NE(table->attention, nullptr) << table->name;
    EXPECT_NE(table->store_cell, nullptr) << table->name;
  }
}

}  // namespace
}  // namespace quipu::cpu
