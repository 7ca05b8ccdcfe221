// Runs a model's graphs without a context: sequences in pages of their own, every token an output. Encoders
// forget each run; an encoder-decoder model's text is given to encode() first.
#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "base/checked.h"
#include "graph/ops/attention.h"
#include "model/model.h"

namespace quipu::test {

/// Cells for some layers, and where the tokens of a run stand in them.
class Cells {
 public:
  Cells(Device& device, const std::vector<LayerCacheSpec>& specs, std::size_t max_tokens,
        std::size_t n_sequences, ElementType type, std::size_t layout_ordinal)
      : tables_(n_sequences, std::vector<std::int32_t>(ceil_div(max_tokens, std::size_t{16}))),
        positions_(tables_.front().size() * n_sequences * 16, -1),
        n_past_(n_sequences, 0) {
    std::int32_t page = 0;
    for (auto& table : tables_) {
      std::iota(table.begin(), table.end(), page);
      page += static_cast<std::int32_t>(table.size());
      layout_.page_tables.emplace_back(table);
    }
    layout_.cell_positions = positions_;
    for (const LayerCacheSpec& spec : specs) {
      const KvShape shape{type, type, spec.n_kv_heads, spec.k_dim, spec.v_dim};
      storages_.push_back(device.create_kv(shape, static_cast<std::size_t>(page)));
      caches_.push_back({storages_.back().get(), layout_ordinal});
    }
  }

  std::span<const GraphOptions::LayerCache> caches() const { return caches_; }
  const AttentionLayout& layout() const { return layout_; }
  AttentionLayout& layout() { return layout_; }

  void forget() {
    std::fill(positions_.begin(), positions_.end(), -1);
    std::fill(n_past_.begin(), n_past_.end(), 0);
  }
  /// The next place of a sequence, for a token of this run; its position.
  std::int32_t append(std::size_t sequence) {
    const std::int32_t place = n_past_[sequence]++;
    const auto page = static_cast<std::size_t>(tables_[sequence][static_cast<std::size_t>(place) / 16]);
    positions_[page * 16 + static_cast<std::size_t>(place) % 16] = place;
    layout_.tokens.push_back({static_cast<std::int32_t>(sequence), place, place});
    return place;
  }

 private:
  std::vector<std::vector<std::int32_t>> tables_;
  std::vector<std::int32_t> positions_, n_past_;
  std::vector<std::unique_ptr<KvStorage>> storages_;
  std::vector<GraphOptions::LayerCache> caches_;
  AttentionLayout layout_;
};

struct SequenceToken {
  std::size_t sequence;
  std::int32_t id;
};

class Forward {
 public:
  /// The goldens' context is 256 long.
  Forward(const LoadedModel& model, std::size_t max_tokens, ElementType cache_type = ElementType::f32,
          unsigned max_threads = 4, std::size_t n_sequences = 1, std::uint32_t context_length = 256)
      : model_(model),
        cells_(model.device(), model.cache_specs(), max_tokens, n_sequences, cache_type, 0),
        cross_cells_(model.device(), model.cross_cache_specs(), max_tokens, n_sequences, cache_type, 1),
        encoder_cells_(model.device(), model.encoder_cache_specs(), max_tokens, n_sequences, cache_type, 0) {
    const std::size_t most = max_tokens * n_sequences;
    const ModelGraph graph = model.build_graph({.caches = cells_.caches(),
                                                .cross_caches = cross_cells_.caches(),
                                                .rope = {.context_length = context_length},
                                                .causal = model.hparams().causal,
                                                .embeddings = !model.has_logits()});
    plan_ = model.device().compile(*graph.graph, {most, most}, max_threads);
    if (cross_cells_.caches().empty()) return;
    const ModelGraph encoder =
        model.build_encoder_graph({.caches = encoder_cells_.caches(), .cross_caches = cross_cells_.caches()});
    encoder_plan_ = model.device().compile(*encoder.graph, {most, most}, max_threads);
  }

  /// Appends `tokens` to the first sequence -> logits [tokens, n_vocab], or embeddings [tokens, n_embd_out]
  /// of models without a head.
  std::vector<float> run(std::span<const std::int32_t> tokens, unsigned n_threads = 1) {
    return run_mixed(in_first_sequence(tokens), n_threads);
  }
  /// The same for tokens of several sequences.
  std::vector<float> run_mixed(std::span<const SequenceToken> tokens, unsigned n_threads = 1) {
    if (!model_.has_memory()) cells_.forget();
    cross_cells_.layout().tokens.clear();  // one for each of this run's, to say which sequence it looks at
    for (const SequenceToken& token : tokens)
      cross_cells_.layout().tokens.push_back({static_cast<std::int32_t>(token.sequence), 0, 0});
    std::vector<float> result(tokens.size() *
                              (model_.has_logits() ? model_.hparams().n_vocab : model_.n_embd_out()));
    float* outputs[] = {result.data()};
    compute(*plan_, cells_, tokens, outputs, n_threads);
    return result;
  }

  /// Gives tokens to the encoder; their sequences' decoders look at them from now on.
  void encode(std::span<const std::int32_t> tokens, unsigned n_threads = 1) {
    encode_mixed(in_first_sequence(tokens), n_threads);
  }
  void encode_mixed(std::span<const SequenceToken> tokens, unsigned n_threads = 1) {
    encoder_cells_.forget();
    cross_cells_.forget();
    cross_cells_.layout().tokens.clear();
    for (const SequenceToken& token : tokens) cross_cells_.append(token.sequence);
    compute(*encoder_plan_, encoder_cells_, tokens, {}, n_threads);
  }

  const Plan& plan() const { return *plan_; }

 private:
  static std::vector<SequenceToken> in_first_sequence(std::span<const std::int32_t> ids) {
    std::vector<SequenceToken> tokens;
    for (const std::int32_t id : ids) tokens.push_back({0, id});
    return tokens;
  }

  void compute(Plan& plan, Cells& cells, std::span<const SequenceToken> tokens,
               std::span<float* const> outputs, unsigned n_threads) {
    cells.layout().tokens.clear();
    std::vector<std::int32_t> ids, positions, rows;
    for (const SequenceToken& token : tokens) {
      rows.push_back(static_cast<std::int32_t>(rows.size()));
      ids.push_back(token.id);
      positions.push_back(cells.append(token.sequence));
    }
    const void* inputs[] = {ids.data(), nullptr, positions.data(), rows.data()};
    const AttentionLayout* layouts[] = {&cells.layout(), &cross_cells_.layout()};
    plan.run({.extents = {tokens.size(), tokens.size()},
              .inputs = inputs,
              .outputs = outputs,
              .layouts = layouts,
              .n_threads = n_threads});
  }

  const LoadedModel& model_;
  Cells cells_, cross_cells_, encoder_cells_;
  std::unique_ptr<Plan> plan_, encoder_plan_;
};

}  // namespace quipu::test
