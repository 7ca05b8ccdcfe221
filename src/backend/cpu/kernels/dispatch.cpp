// Chooses the kernels once: by what the processor can do, or by the environment variable QUIPU_CPU.
#include "backend/cpu/kernels/dispatch.h"

#include <fmt/ranges.h>

#include <cstdlib>

#include "backend/cpu/kernels/instruction_sets.h"
#include "base/cpu_features.h"
#include "base/error.h"

namespace quipu::cpu {
namespace {

struct Candidate {
  KernelTable table;
  bool can_run;
};

using ChooseMatmul = MatmulKernel (*)(ElementType);

struct Folder {
  QuantizeKernel (*quantize)(ActivationFormat);
  void (*parts[3])(KernelTable&);
};

KernelTable make_table(std::string_view name, ChooseMatmul matmul, const Folder& folder) {
  KernelTable table{};
  table.name = name;
  table.matmul = matmul;
  table.quantize = folder.quantize;
  for (const auto add_part : folder.parts) add_part(table);
  return table;
}

Candidate scalar_candidate() {
  const Folder folder{scalar::quantize_kernel,
                      {scalar::add_row_operations, scalar::add_attention, scalar::add_cell_storage}};
  return {make_table("scalar", scalar::matmul_kernel, folder), true};
}

#if defined(QUIPU_X86_KERNELS)
/// For processors without AVX-512 BF16.
MatmulKernel matmul_without_bf16(ElementType type) {
  return type == ElementType::bf16 ? avx2::matmul_kernel(type) : avx512::matmul_kernel(type);
}

std::vector<Candidate> make_candidates() {
  const CpuFeatures& has = cpu_features();
  const Folder avx2{avx2::quantize_kernel,
                    {avx2::add_row_operations, avx2::add_attention, avx2::add_cell_storage}};
  const Folder avx512{avx512::quantize_kernel,
                      {avx512::add_row_operations, avx512::add_attention, avx512::add_cell_storage}};
  const ChooseMatmul vnni = has.avx_vnni ? avx2::vnni_matmul_kernel : avx2::evex_vnni_matmul_kernel;
  std::vector<Candidate> candidates;
  const auto add = [&](std::string_view name, bool can_run, ChooseMatmul matmul, const Folder& folder) {
    KernelTable only_named{};
    only_named.name = name;
    candidates.push_back({can_run ? make_table(name, matmul, folder) : only_named, can_run});
  };
  add("avx512", has.avx512_vnni && has.avx512_bf16, avx512::matmul_kernel, avx512);
  add("avx512-vnni", has.avx512_vnni, matmul_without_bf16, avx512);
  add("avx2-vnni", has.avx_vnni || has.avx512_vnni, vnni, avx2);
  add("avx2", has.avx2, avx2::matmul_kernel, avx2);
  candidates.push_back(scalar_candidate());
  return candidates;
}
#else
std::vector<Candidate> make_candidates() {
  return {scalar_candidate()};
}
#endif

/// The best first.
const std::vector<Candidate>& candidates() {
  static const std::vector<Candidate> all = make_candidates();
  return all;
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const Candidate& candidate : candidates()) all.push_back(candidate.table.name);
  return all;
}

}  // namespace

std::vector<const KernelTable*> runnable_kernels() {
  std::vector<const KernelTable*> tables;
  for (const Candidate& candidate : candidates()) {
    if (candidate.can_run) tables.push_back(&candidate.table);
  }
  return tables;
}

const KernelTable& scalar_kernels() {
  return candidates().back().table;
}

const KernelTable& choose_kernels(std::string_view name) {
  for (const Candidate& candidate : candidates()) {
    if (name.empty() ? candidate.can_run : candidate.table.name == name) {
      if (candidate.can_run) return candidate.table;
      fail(ErrorCode::unsupported, "QUIPU_CPU: this processor cannot run the kernels '{}'", name);
    }
  }
  fail(ErrorCode::unsupported, "QUIPU_CPU: no kernels named '{}' (there are {})", name,
       fmt::join(names(), ", "));
}

const KernelTable& kernels() {
  static const KernelTable& table = []() -> const KernelTable& {
    const char* wanted = std::getenv("QUIPU_CPU");
    return choose_kernels(wanted == nullptr ? "" : wanted);
  }();
  return table;
}

}  // namespace quipu::cpu
