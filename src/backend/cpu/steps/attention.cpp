// Attention: each token's keys and values go into their cell, then blocks of queries attend, some heads of
// one key/value head at a time.
#include "graph/ops/attention.h"

#include <algorithm>
#include <array>

#include "backend/cpu/kernels/attention.h"
#include "backend/cpu/steps/steps.h"
#include "base/checked.h"
#include "base/error.h"

namespace quipu::cpu {
namespace {

KvPages* pages_of(KvStorage* cache) {
  auto* pages = dynamic_cast<KvPages*>(cache);
  QUIPU_CHECK(pages != nullptr);
  return pages;
}

void emit_store(Compiler& compiler, const std::string& name, Value k, Value v, KvPages* cache,
                std::size_t layout) {
  const BufferId keys = compiler.buffer(k);
  const BufferId values = compiler.buffer(v);
  const std::size_t k_row = k.shape().row_elements();
  const std::size_t v_row = v.shape().row_elements();
  compiler.emit({.name = name,
                 .rows = k.shape().rows(),
                 .reads = {keys, values},
                 .writes = {compiler.token(cache)},
                 .n_units = units_of(k.shape().rows()),
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

/// How the heads of a key/value head are shared out. A task takes some of them, so many that its scratch
/// stays in the second-level cache; and where there are fewer tasks than threads, fewer. No bit depends on
/// it.
class HeadSplit {
 public:
  HeadSplit(const KvLayout& layout, std::size_t group) : group_(group), n_kv_heads_(layout.n_kv_heads) {
    constexpr std::size_t kScratchGoal = 512 << 10;
    const std::size_t two = attention_scratch_bytes(layout, 2, 1);
    const std::size_t fixed = 2 * attention_scratch_bytes(layout, 1, 1) - two;
    const std::size_t row_bytes = two - attention_scratch_bytes(layout, 1, 1);
    rows_ = std::max(kQueryBlock, fixed < kScratchGoal ? (kScratchGoal - fixed) / row_bytes : 0);
  }

  std::size_t max_rows() const { return std::min(rows_, kQueryBlock * group_); }

  /// Heads in a task, and tasks for each key/value head (the last may have fewer heads).
  struct Parts {
    std::size_t n_heads, count;
  };
  Parts parts(const std::vector<QueryBlock>& blocks, std::size_t n_threads) const {
    std::size_t longest = 1;
    for (const QueryBlock& block : blocks) longest = std::max(longest, block.n_tokens);
    const std::size_t most = std::clamp<std::size_t>(rows_ / longest, 1, group_);
    const std::size_t n_tasks = std::max<std::size_t>(1, blocks.size() * n_kv_heads_);
    const std::size_t wanted = std::min(group_, ceil_div(n_threads, n_tasks));
    const std::size_t count = std::max(ceil_div(group_, most), wanted);
    const std::size_t n_heads = ceil_div(group_, count);
    return {n_heads, ceil_div(group_, n_heads)};
  }

 private:
  std::size_t group_;
  std::size_t n_kv_heads_;
  std::size_t rows_;
};

void emit_attend(const Node& node, Compiler& compiler, KvPages* cache) {
  const auto params = node.as<AttentionParams>();
  const KvLayout& layout = cache->layout();
  const std::size_t n_heads = node.inputs[0].shape().dim(1);
  const std::size_t group = n_heads / layout.n_kv_heads;
  const BufferId queries = compiler.buffer(node.inputs[0]);
  const BufferId output = compiler.buffer(node.output);
  const float* sinks = vector_of(node.inputs[3]);
  const auto kernel = compiler.kernels().attention;
  const auto blocks = compiler.query_blocks(params.layout);
  const HeadSplit split(layout, group);
  const std::size_t n_kv_heads = layout.n_kv_heads;

  const auto attend = [=](const Run& run, const QueryBlock& block, std::size_t kv_head,
                          std::size_t first_head, std::size_t end_head, std::span<std::byte> scratch) {
    const AttentionLayout& cells = *run.arguments.layouts[params.layout];
    std::array<AttentionQuery, kQueryBlock> where;
    for (std::size_t i = 0; i < block.n_tokens; ++i) {
      const AttentionLayout::Token& token = cells.tokens[block.first_token + i];
      where[i] = {token.position, token.place};
    }
    const auto sequence = static_cast<std::size_t>(cells.tokens[block.first_token].sequence);
    const KvLayout& kv = cache->layout();
    const std::size_t q_stride = n_heads * kv.k_dim;
    const std::size_t out_stride = n_heads * kv.v_dim;
    const std::size_t head = kv_head * group + first_head;
    const AttentionBias& bias = params.bias;
    const std::size_t n_biases = 2 * static_cast<std::size_t>(bias.radius) + 1;
    kernel({.layout = &kv,
            .cache = cache->first_page(),
            .kv_head = kv_head,
            .pages = cells.page_tables[sequence],
            .cell_positions = cells.cell_positions.data(),
            .queries = std::span(where).first(block.n_tokens),
            .q = run.data<const float>(queries) + block.first_token * q_stride + head * kv.k_dim,
            .q_stride = q_stride,
            .group = end_head - first_head,
            .out = run.data<float>(output) + block.first_token * out_stride + head * kv.v_dim,
            .out_stride = out_stride,
            .scale = params.scale,
            .soft_cap = params.soft_cap,
            .window = params.window,
            .causal = params.causal,
            .symmetric_window = params.symmetric_window,
            .chunked_window = params.chunked_window,
            .slopes = bias.kind == AttentionBias::Kind::alibi ? bias.values.data() + head : nullptr,
            .bias_table =
                bias.kind == AttentionBias::Kind::relative ? bias.values.data() + head * n_biases : nullptr,
            .bias_radius = bias.radius,
            .sinks = sinks == nullptr ? nullptr : sinks + head,
            .scratch = scratch});
  };
  compiler.emit({.name = node.output.name(),
                 .reads = {queries, compiler.token(cache)},
                 .writes = {output},
                 .n_units =
                     [=](const Run& run) {
                       return blocks->size() * n_kv_heads *
                              split.parts(*blocks, run.arguments.n_threads).count;
                     },
                 .body =
                     [=](const Run& run, UnitRange range, std::span<std::byte> scratch) {
                       const HeadSplit::Parts parts = split.parts(*blocks, run.arguments.n_threads);
                       for (std::size_t unit = range.begin; unit < range.end; ++unit) {
                         const std::size_t part = unit / blocks->size();
                         const std::size_t first_head = part % parts.count * parts.n_heads;
                         attend(run, (*blocks)[unit % blocks->size()], part / parts.count, first_head,
                                std::min(group, first_head + parts.n_heads), scratch);
                       }
                     },
                 .scratch_bytes = attention_scratch_bytes(layout, split.max_rows(), 1)});
}

}  // namespace

void make_attention(const Node& node, Compiler& compiler) {
  const auto& params = node.as<AttentionParams>();
  KvPages* cache = pages_of(params.cache);
  if (node.inputs[1].valid()) {
    emit_store(compiler, node.output.name() + " store", node.inputs[1], node.inputs[2], cache, params.layout);
  }
  emit_attend(node, compiler, cache);
}

void make_store_cells(const Node& node, Compiler& compiler) {
  const auto& params = node.as<StoreCellsParams>();
  emit_store(compiler, node.output.name(), node.inputs[0], node.inputs[1], pages_of(params.cache),
             params.layout);
}

}  // namespace quipu::cpu
