// The tables of kernels that this processor can run, for tests that take them in turn.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "backend/cpu/kernels/dispatch.h"

namespace quipu::test {

/// The scalar reference first.
inline std::vector<const cpu::KernelTable*> kernel_tables() {
  std::vector<const cpu::KernelTable*> tables = cpu::runnable_kernels();
  std::reverse(tables.begin(), tables.end());
  return tables;
}

/// All but the scalar reference.
inline std::vector<const cpu::KernelTable*> vector_tables() {
  std::vector<const cpu::KernelTable*> tables = kernel_tables();
  tables.erase(tables.begin());
  return tables;
}

/// For names of parametrized tests.
inline std::string name_of(const cpu::KernelTable* table) {
  std::string name(table->name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace quipu::test
