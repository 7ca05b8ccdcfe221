// Attention: each token's keys and values go into their cell, then blocks of queries attend, one key/value
// head at a time.
#include "graph/ops/attention.h"

#include <algorithm>
#include <array>

#include "backend/cpu/steps/steps.h"
#include "base/error.h"

namespace quipu::cpu {
namespace {

struct AttentionHeads {
  std::size_t n_heads, n_kv_heads, k_dim, v_dim;
};

void emit_store(const Node& node, Compiler& compiler, KvPages* cache, BufferId cache_token) {
  const std::size_t layout = node.as<AttentionParams>().layout;
  const BufferId keys = compiler.buffer(node.inputs[1]);
  const BufferId values = compiler.buffer(node.inputs[2]);
  const std::size_t k_row = node.inputs[1].shape().row_elements();
  const std::size_t v_row = node.inputs[2].shape().row_elements();
  compiler.emit({.name = node.output.name() + " store",
                 .rows = node.output.shape().rows(),
                 .reads = {keys, values},
                 .writes = {cache_token},
                 .n_units = units_of(node.output.shape().rows()),
                 .body = [=](const Run& run, UnitRange range, std::span<std::byte>) {
                   const AttentionLayout& cells = *run.arguments.layouts[layout];
                   for (std::size_t t = range.begin; t < range.end; ++t) {
                     const AttentionLayout::Token& token = cells.tokens[t];
                     const auto place = static_cast<std::size_t>(token.place);
                     const auto table = cells.page_tables[static_cast<std::size_t>(token.sequence)];
                     store_cell(cache->layout(), cache->page(table[place / kPageSlots]), place % kPageSlots,
                                run.data<const float>(keys) + t * k_row,
                                run.data<const float>(values) + t * v_row);
                   }
                 }});
}

void emit_attend(const Node& node, Compiler& compiler, KvPages* cache, BufferId cache_token) {
  const auto params = node.as<AttentionParams>();
  const Shape& q_shape = node.inputs[0].shape();
  const AttentionHeads heads{q_shape.dim(1), node.inputs[1].shape().dim(1), q_shape.dim(2),
                             node.inputs[2].shape().dim(2)};
  const std::size_t group = heads.n_heads / heads.n_kv_heads;
  const BufferId queries = compiler.buffer(node.inputs[0]);
  const BufferId output = compiler.buffer(node.output);
  const auto kernel = compiler.kernels().attention;
  const auto blocks = compiler.query_blocks(params.layout);

  const auto attend = [=](const Run& run, std::size_t unit, std::span<std::byte> scratch) {
    const AttentionLayout& cells = *run.arguments.layouts[params.layout];
    const QueryBlock& block = (*blocks)[unit % blocks->size()];
    const std::size_t kv_head = unit / blocks->size();
    std::array<AttentionQuery, kQueryBlock> where;
    for (std::size_t i = 0; i < block.n_tokens; ++i) {
      const AttentionLayout::Token& token = cells.tokens[block.first_token + i];
      where[i] = {token.position, token.place};
    }
    const auto sequence = static_cast<std::size_t>(cells.tokens[block.first_token].sequence);
    const std::size_t q_stride = heads.n_heads * heads.k_dim;
    const std::size_t out_stride = heads.n_heads * heads.v_dim;
    kernel(
        {.layout = &cache->layout(),
         .cache = cache->first_page(),
         .kv_head = kv_head,
         .pages = cells.page_tables[sequence],
         .cell_positions = cells.cell_positions.data(),
         .queries = std::span(where).first(block.n_tokens),
         .q = run.data<const float>(queries) + block.first_token * q_stride + kv_head * group * heads.k_dim,
         .q_stride = q_stride,
         .group = group,
         .out = run.data<float>(output) + block.first_token * out_stride + kv_head * group * heads.v_dim,
         .out_stride = out_stride,
         .scale = params.scale,
         .soft_cap = params.soft_cap,
         .window = params.window,
         .causal = params.causal,
         .sinks = nullptr,
         .scratch = scratch});
  };
  compiler.emit({.name = node.output.name(),
                 .reads = {queries, cache_token},
                 .writes = {output},
                 .n_units = [=](const Run&) { return blocks->size() * heads.n_kv_heads; },
                 .body =
                     [=](const Run& run, UnitRange range, std::span<std::byte> scratch) {
                       for (std::size_t unit = range.begin; unit < range.end; ++unit)
                         attend(run, unit, scratch);
                     },
                 .scratch_bytes = attention_scratch_bytes(cache->layout(), kQueryBlock, group)});
}

}  // namespace

void make_attention(const Node& node, Compiler& compiler) {
  auto* cache = dynamic_cast<KvPages*>(node.as<AttentionParams>().cache);
  QUIPU_CHECK(cache != nullptr);
  const BufferId cache_token = compiler.token(cache);
  emit_store(node, compiler, cache, cache_token);
  emit_attend(node, compiler, cache, cache_token);
}

}  // namespace quipu::cpu
