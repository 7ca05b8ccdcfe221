// Runs a model's graph without a context: one sequence in pages counted from 0, every token an output.
#pragma once

#include <numeric>
#include <vector>

#include "base/checked.h"
#include "graph/ops/attention.h"
#include "model/model.h"

namespace quipu::test {

class Forward {
 public:
  Forward(const LoadedModel& model, std::size_t max_tokens, ElementType cache_type = ElementType::f32,
          unsigned max_threads = 4)
      : model_(model), table_(ceil_div(max_tokens, std::size_t{16})), positions_(table_.size() * 16, -1) {
    std::iota(table_.begin(), table_.end(), 0);
    std::vector<GraphOptions::LayerCache> caches;
    for (const LayerCacheSpec& spec : model.cache_specs()) {
      const KvShape shape{cache_type, cache_type, spec.n_kv_heads, spec.k_dim, spec.v_dim};
      storages_.push_back(model.device().create_kv(shape, table_.size()));
      caches.push_back({storages_.back().get(), 0});
    }
    const ModelGraph graph = model.build_graph({.caches = caches, .rope = {}, .causal = true});
    plan_ = model.device().compile(*graph.graph, {max_tokens, max_tokens}, max_threads);
    layout_.page_tables = {std::span<const std::int32_t>(table_)};
    layout_.cell_positions = positions_;
  }

  /// Appends `tokens` to the sequence -> logits [tokens, n_vocab]
  std::vector<float> run(std::span<const std::int32_t> tokens, unsigned n_threads = 1) {
    layout_.tokens.clear();
    std::vector<std::int32_t> positions, rows;
    for (std::size_t i = 0; i < tokens.size(); ++i, ++n_past_) {
      positions.push_back(n_past_);
      rows.push_back(static_cast<std::int32_t>(i));
      positions_[static_cast<std::size_t>(n_past_)] = n_past_;
      layout_.tokens.push_back({0, n_past_, n_past_});
    }
    std::vector<float> logits(tokens.size() * model_.hparams().n_vocab);
    const void* inputs[] = {tokens.data(), nullptr, positions.data(), rows.data()};
    float* outputs[] = {logits.data()};
    const AttentionLayout* layouts[] = {&layout_};
    plan_->run({.extents = {tokens.size(), tokens.size()},
                .inputs = inputs,
                .outputs = outputs,
                .layouts = layouts,
                .n_threads = n_threads});
    return logits;
  }

  const Plan& plan() const { return *plan_; }

 private:
  const LoadedModel& model_;
  std::vector<std::int32_t> table_, positions_;
  std::vector<std::unique_ptr<KvStorage>> storages_;
  AttentionLayout layout_;
  std::unique_ptr<Plan> plan_;
  std::int32_t n_past_ = 0;
};

}  // namespace quipu::test
