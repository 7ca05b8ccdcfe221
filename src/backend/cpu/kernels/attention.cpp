// The layout of a task's scratch, the same for every instruction set.
#include "backend/cpu/kernels/attention.h"

#include <algorithm>

#include "backend/cpu/kernels/activation.h"
#include "base/checked.h"

namespace quipu::cpu {
namespace {

constexpr std::size_t kLanes = 16;

}  // namespace

AttentionScratch::AttentionScratch(const KvLayout& layout, std::size_t n_queries, std::size_t group)
    : v_padded(round_up(layout.v_dim, kLanes)) {
  const std::size_t n_rows = n_queries * group;
  std::size_t end = 0;
  const auto part = [&end](std::size_t n_floats) {
    const std::size_t start = end;
    end += round_up(n_floats, kLanes);
    return start;
  };
  q = part(n_rows * std::max(layout.k_dim, sizeof(const float*) / sizeof(float)));
  weights = part(n_rows * kTilePlaces);
  output = part(n_rows * v_padded);
  sum = part(n_rows * kLanes);
  max = part(n_rows);
  factor = part(n_rows);
  merged = part(n_rows * v_padded);
  merged_sum = part(n_rows * kLanes);
  merged_max = part(n_rows);
  visible = part(n_rows * 2);
  const bool k_blocks = is_cache_block_type(layout.k_type);
  const bool v_blocks = is_cache_block_type(layout.v_type);
  const std::size_t q_bytes = k_blocks ? activation_row_bytes(ActivationFormat::q8_32, layout.k_dim) : 0;
  quantized = part(q_bytes / sizeof(float));
  keys = part(k_blocks ? layout.k_dim * kTilePlaces / sizeof(float) : 0);
  values = part(v_blocks ? v_padded * kTilePlaces : v_padded);
  size = end;
}

std::size_t attention_scratch_bytes(const KvLayout& layout, std::size_t n_queries, std::size_t group) {
  return AttentionScratch(layout, n_queries, group).size * sizeof(float);
}

}  // namespace quipu::cpu
