// Models and batches for tests of contexts.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "context/context.h"
#include "quipu/error.h"
#include "quipu/log.h"
#include "support/files.h"
#include "support/golden.h"

namespace quipu::test {

/// By name: the built-in model "quipu-mini", or a tiny golden model. With `matrices`, that one's matrices are
/// of this type, and wide enough for it. Loaded once.
inline std::shared_ptr<const LoadedModel> model_named(const std::string& name,
                                                      std::optional<ElementType> matrices = std::nullopt) {
  static std::map<std::pair<std::string, int>, std::shared_ptr<const LoadedModel>> models;
  auto& model = models[{name, matrices ? static_cast<int>(*matrices) : -1}];
  if (model != nullptr) return model;
  if (name == "quipu-mini") {
    model = LoadedModel::load(std::filesystem::path(QUIPU_SOURCE_DIR) / "models/quipu-mini.gguf");
  } else {
    const std::uint32_t block = matrices ? info(*matrices).block_elements : 1;
    const std::uint32_t factor = block <= 32 ? 1 : block <= 64 ? 2 : 8;
    const Golden golden = load_golden(name);
    model = LoadedModel::load(golden_model(factor == 1 ? golden : widened(golden, factor), matrices), name);
  }
  return model;
}

/// A batch under construction.
class TestBatch {
 public:
  TestBatch& add(Token token, Position position, const std::vector<SequenceId>& sequences,
                 bool output = true) {
    tokens.push_back(token);
    positions.push_back(position);
    ids.insert(ids.end(), sequences.begin(), sequences.end());
    ends.push_back(ids.size());
    outputs.push_back(output ? 1 : 0);
    return *this;
  }
  TestBatch& add(std::span<const Token> several, Position first, SequenceId sequence, bool output = true) {
    for (std::size_t i = 0; i < several.size(); ++i) {
      add(several[i], first + static_cast<Position>(i), {sequence}, output);
    }
    return *this;
  }
  BatchView view() const {
    return {.tokens = tokens,
            .embeddings = {},
            .embedding_width = 0,
            .positions = positions,
            .sequence_ends = ends,
            .sequences = ids,
            .outputs = outputs};
  }

  std::vector<Token> tokens;
  std::vector<Position> positions;
  std::vector<std::size_t> ends;
  std::vector<SequenceId> ids;
  std::vector<char> outputs;
};

/// Token ids that look like a prompt but mean nothing; the same for the same seed.
inline std::vector<Token> some_tokens(const LoadedModel& model, std::size_t n, std::uint32_t seed = 1) {
  std::vector<Token> tokens;
  std::uint32_t state = seed * 2654435761U + 12345U;
  for (std::size_t i = 0; i < n; ++i) {
    state = state * 1664525U + 1013904223U;
    tokens.push_back(static_cast<Token>((state >> 8) % model.hparams().n_vocab));
  }
  return tokens;
}

/// Logits as bits, since equal means every bit.
using Bits = std::vector<std::uint32_t>;
inline Bits bits_of(std::span<const float> row) {
  Bits bits(row.size());
  std::memcpy(bits.data(), row.data(), row.size_bytes());
  return bits;
}

/// The message of the Error(invalid_argument) that `action` throws.
template <typename Action>
std::string refusal_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.message();
  }
  return "accepted";
}

/// Parameters for a small context.
inline ContextParams small_params() {
  ContextParams params;
  params.n_ctx = 256;
  params.n_batch = 256;
  params.n_ubatch = 256;
  params.n_threads = 1;
  params.n_threads_batch = 1;
  return params;
}

/// Log lines while it lives, instead of to standard error.
class CapturedLog {
 public:
  CapturedLog() {
    set_log_sink([this](LogLevel, std::string_view line) { lines.emplace_back(line); });
  }
  ~CapturedLog() { set_log_sink({}); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  std::vector<std::string> lines;
};

}  // namespace quipu::test
