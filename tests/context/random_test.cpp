// Long random sequences of batches and memory operations against a plain model of what memory should hold.
// Now and then a sequence is computed anew, alone, from what it went through: the logits must have the same
// bits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <set>

#include "context/test_context.h"

namespace quipu::test {
namespace {

struct Case {
  std::string name;
  std::string model;
  bool unified = true;
  std::uint32_t n_ubatch = 16;
  bool swa_full = true;
  ElementType cache = ElementType::f16;
};
void PrintTo(const Case& tested, std::ostream* out) {
  *out << tested.name;
}

struct Cell {
  std::int64_t id;  // shared cells have the same
  Position position;
};

struct Operation;
/// What a sequence went through.
using History = std::vector<Operation>;
struct Operation {
  enum class Kind { decode, remove, copy_from, add, divide } kind;
  std::vector<Token> tokens = {};
  Position p0 = 0;  // of `decode`: that of the first token
  Position p1 = 0;
  std::int32_t number = 0;  // delta or divisor
  History source = {};      // of `copy_from`
};

struct Sequence {
  std::vector<Cell> cells;  // in the order in which they came
  History history;

  Position next() const {
    Position highest = -1;
    for (const Cell& cell : cells) highest = std::max(highest, cell.position);
    return highest + 1;
  }
  Position lowest() const {
    Position lowest = -1;
    for (const Cell& cell : cells) lowest = lowest < 0 ? cell.position : std::min(lowest, cell.position);
    return lowest;
  }
};

std::size_t n_tokens_of(const History& history) {
  std::size_t total = 0;
  for (const Operation& operation : history) {
    total += operation.tokens.size() + n_tokens_of(operation.source);
  }
  return total;
}
std::size_t depth_of(const History& history) {
  std::size_t depth = 0;
  for (const Operation& operation : history) {
    if (operation.kind == Operation::Kind::copy_from) {
      depth = std::max(depth, depth_of(operation.source) + 1);
    }
  }
  return depth;
}

/// For failures.
std::string to_text(const History& history) {
  std::string text;
  for (const Operation& operation : history) {
    static constexpr const char* kNames[] = {"decode", "remove", "copy from", "add", "divide"};
    text += fmt::format("{} of {}: [{}, {}) {}", kNames[static_cast<int>(operation.kind)],
                        operation.tokens.size(), operation.p0, operation.p1, operation.number);
    if (operation.kind == Operation::Kind::copy_from)
      text += fmt::format("{{{}}}", to_text(operation.source));
    text += "; ";
  }
  return text;
}

constexpr SequenceId kSequences = 4;
constexpr std::uint32_t kCells = 256;  // in all, or of each sequence

class RandomRun : public ::testing::TestWithParam<Case> {
 protected:
  ContextParams params(std::uint32_t n_ubatch) const {
    const Case& tested = GetParam();
    ContextParams params = small_params();
    params.n_ctx = tested.unified ? kCells : kCells * kSequences;
    params.n_seq_max = kSequences;
    params.kv_unified = tested.unified;
    params.n_ubatch = n_ubatch;
    params.swa_full = tested.swa_full;
    params.type_k = params.type_v = tested.cache;
    return params;
  }

  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  SequenceId any_sequence() { return static_cast<SequenceId>(below(kSequences)); }
  Sequence& model_of(SequenceId s) { return sequences_[static_cast<std::size_t>(s)]; }
  Memory& memory() { return context_->memory(); }

  std::size_t n_distinct() const {
    std::set<std::int64_t> ids;
    for (const Sequence& sequence : sequences_) {
      for (const Cell& cell : sequence.cells) ids.insert(cell.id);
    }
    return ids.size();
  }

  // A range that often is a tail, sometimes a middle.
  std::pair<Position, Position> any_range(SequenceId s) {
    const auto end = static_cast<std::uint32_t>(model_of(s).next()) + 1;
    const auto p0 = static_cast<Position>(below(end));
    if (below(2) == 0) return {p0, -1};
    return {p0, p0 + static_cast<Position>(1 + below(20))};
  }
  static bool contains(std::pair<Position, Position> range, Position position) {
    return position >= range.first && (range.second < 0 || position < range.second);
  }

  void forget(SequenceId s) {
    ASSERT_TRUE(memory().remove(s, -1, -1));
    model_of(s) = {};
  }

  // What some sequences get in a batch.
  struct Text {
    std::vector<SequenceId> sequences;
    std::vector<Token> tokens;
  };
  std::vector<Text> any_texts() {
    std::vector<Text> texts;
    for (SequenceId s = 0; s < kSequences; ++s) {
      if (below(2) == 0) continue;
      const auto joined =
          std::find_if(texts.begin(), texts.end(), [&](const Text& text) { return may_join(text, s); });
      if (joined != texts.end()) {
        joined->sequences.push_back(s);
        ++n_joined_;
        continue;
      }
      Text text{{s}, std::vector<Token>(1 + below(below(4) == 0 ? 24 : 4))};
      for (Token& token : text.tokens) token = static_cast<Token>(below(model_->hparams().n_vocab));
      texts.push_back(std::move(text));
    }
    return texts;
  }
  // Where sequences hold the same cells, their tokens may be the same ones.
  bool may_join(const Text& text, SequenceId s) {
    const std::vector<SequenceId> pair{text.sequences[0], s};
    if (!GetParam().unified || !memory().same_cells(pair) || below(4) == 0) return false;
    const auto same = [](const Cell& a, const Cell& b) { return a.id == b.id && a.position == b.position; };
    const auto &first = model_of(pair[0]).cells, &second = model_of(s).cells;
    EXPECT_TRUE(std::is_permutation(first.begin(), first.end(), second.begin(), second.end(), same));
    return true;
  }

  void decode() {
    TestBatch batch;
    std::vector<Text> texts = any_texts();
    if (texts.empty()) return;
    std::vector<std::ptrdiff_t> last_rows(texts.size());
    for (std::size_t i = 0; i < 24; ++i) {  // interleaved
      for (std::size_t t = 0; t < texts.size(); ++t) {
        const auto& [sequences, tokens] = texts[t];
        if (i >= tokens.size()) continue;
        last_rows[t] = static_cast<std::ptrdiff_t>(batch.tokens.size());
        const bool is_output = i + 1 == tokens.size() || below(3) == 0;
        batch.add(tokens[i], model_of(sequences[0]).next() + static_cast<Position>(i), sequences, is_output);
      }
    }
    const std::size_t n_before = n_distinct();
    const DecodeStatus status = context_->decode(batch.view());
    if (status == DecodeStatus::no_room) return;
    ASSERT_EQ(status, DecodeStatus::ok);
    if (GetParam().unified) {
      ASSERT_LE(n_before + batch.tokens.size(), kCells);
    }
    for (const auto& [sequences, tokens] : texts) {
      const Position first = model_of(sequences[0]).next();
      for (std::size_t i = 0; i < tokens.size(); ++i, ++next_id_) {
        for (const SequenceId s : sequences) {
          model_of(s).cells.push_back({next_id_, first + static_cast<Position>(i)});
        }
      }
      for (const SequenceId s : sequences) {
        model_of(s).history.push_back({.kind = Operation::Kind::decode, .tokens = tokens, .p0 = first});
      }
    }
    if (below(5) != 0) return;
    ++n_compared_;
    const std::size_t t = below(static_cast<std::uint32_t>(texts.size()));
    const auto& sequences = texts[t].sequences;
    const SequenceId checked = sequences[below(static_cast<std::uint32_t>(sequences.size()))];
    ASSERT_EQ(bits_of(context_->logits(last_rows[t])), replayed(model_of(checked).history))
        << "sequence " << checked << ": " << to_text(model_of(checked).history);
  }

  void remove() {
    const SequenceId s = any_sequence();
    const auto range = below(6) == 0 ? std::pair<Position, Position>{0, -1} : any_range(s);
    if (!memory().remove(s, range.first, range.second)) {
      EXPECT_FALSE(GetParam().swa_full);
      return;
    }
    Sequence& sequence = model_of(s);
    std::erase_if(sequence.cells, [&](const Cell& cell) { return contains(range, cell.position); });
    sequence.history.push_back({.kind = Operation::Kind::remove, .p0 = range.first, .p1 = range.second});
    if (sequence.cells.empty()) sequence.history.clear();
  }

  void copy() {
    const SequenceId from = any_sequence(), to = any_sequence();
    const bool whole = below(2) == 0;
    const auto range = whole ? std::pair<Position, Position>{-1, -1} : any_range(from);
    if (!whole && depth_of(model_of(from).history) >= 2) return;
    if (from == to) return;
    const Sequence source = model_of(from);
    try {
      memory().copy(from, to, range.first, range.second);
    } catch (const Error&) {
      return;  // no page is left, or a window has forgotten what is needed
    }
    Sequence& target = model_of(to);
    if (whole) {
      target = source;
      return;
    }
    std::erase_if(target.cells, [&](const Cell& cell) { return contains(range, cell.position); });
    for (const Cell& cell : source.cells) {
      if (contains(range, cell.position)) target.cells.push_back(cell);
    }
    target.history.push_back({.kind = Operation::Kind::copy_from,
                              .p0 = range.first,
                              .p1 = range.second,
                              .source = source.history});
    if (target.cells.empty()) target.history.clear();
  }

  void add() {
    const SequenceId s = any_sequence();
    const auto range = any_range(s);
    const auto delta = static_cast<std::int32_t>(below(17)) - 8;
    change(s, range, {.kind = Operation::Kind::add, .p0 = range.first, .p1 = range.second, .number = delta},
           [&](Position position) { return position + delta; });
  }
  void divide() {
    const SequenceId s = any_sequence();
    const auto range = any_range(s);
    const auto divisor = static_cast<std::int32_t>(1 + below(3));
    change(s, range,
           {.kind = Operation::Kind::divide, .p0 = range.first, .p1 = range.second, .number = divisor},
           [&](Position position) { return position / divisor; });
  }
  void change(SequenceId s, std::pair<Position, Position> range, Operation operation,
              const std::function<Position(Position)>& changed) {
    Sequence& sequence = model_of(s);
    std::vector<Cell> cells = sequence.cells;
    for (Cell& cell : cells) {
      if (contains(range, cell.position)) cell.position = changed(cell.position);
    }
    std::erase_if(cells, [](const Cell& cell) { return cell.position < 0; });
    const std::size_t n_logged = log_.lines.size();
    if (operation.kind == Operation::Kind::add) {
      memory().add(s, operation.p0, operation.p1, operation.number);
    } else {
      memory().divide(s, operation.p0, operation.p1, operation.number);
    }
    if (log_.lines.size() != n_logged) {  // refused, with a line
      EXPECT_FALSE(GetParam().swa_full) << log_.lines.back();
      return;
    }
    sequence.cells = std::move(cells);
    sequence.history.push_back(std::move(operation));
    if (sequence.cells.empty()) sequence.history.clear();
  }

  void keep() {
    const SequenceId kept = any_sequence();
    memory().keep(kept);
    for (SequenceId s = 0; s < kSequences; ++s) {
      if (s != kept) model_of(s) = {};
    }
  }

  // The last logits of a sequence that went through this, alone, in other micro-batches.
  Bits replayed(const History& history) {
    InferenceContext fresh(model_, params(1 + below(40)));
    Bits last;
    replay(fresh, history, 0, last);
    return last;
  }
  void replay(InferenceContext& fresh, const History& history, SequenceId s, Bits& last) {
    for (std::size_t i = 0; i < history.size(); ++i) {
      const Operation& operation = history[i];
      switch (operation.kind) {
        case Operation::Kind::decode: {
          TestBatch batch;
          batch.add(operation.tokens, operation.p0, s, false);
          const auto goes_on = [&] {
            return i + 1 < history.size() && history[i + 1].kind == Operation::Kind::decode;
          };
          while (goes_on()) {
            ++i;
            batch.add(history[i].tokens, history[i].p0, s, false);
          }
          batch.outputs.back() = 1;
          ASSERT_EQ(fresh.decode(batch.view()), DecodeStatus::ok);
          last = bits_of(fresh.logits(-1));
          break;
        }
        case Operation::Kind::remove:
          ASSERT_TRUE(fresh.memory().remove(s, operation.p0, operation.p1));
          break;
        case Operation::Kind::copy_from: {
          Bits unused;
          replay(fresh, operation.source, s + 1, unused);
          fresh.memory().copy(s + 1, s, operation.p0, operation.p1);
          ASSERT_TRUE(fresh.memory().remove(s + 1, -1, -1));
          break;
        }
        case Operation::Kind::add: fresh.memory().add(s, operation.p0, operation.p1, operation.number); break;
        case Operation::Kind::divide:
          fresh.memory().divide(s, operation.p0, operation.p1, operation.number);
          break;
      }
    }
  }

  void check_positions() {
    for (SequenceId s = 0; s < kSequences; ++s) {
      ASSERT_EQ(memory().max_position(s), model_of(s).next() - 1) << "sequence " << s;
      if (!GetParam().swa_full) continue;
      ASSERT_EQ(memory().min_position(s), model_of(s).lowest()) << "sequence " << s;
    }
  }

  void step() {
    const std::uint32_t choice = below(100);
    if (choice < 60) {
      decode();
    } else if (choice < 80) {
      remove();
    } else if (choice < 90) {
      copy();
    } else if (choice < 94) {
      add();
    } else if (choice < 97) {
      divide();
    } else {
      keep();
    }
    for (SequenceId s = 0; s < kSequences; ++s) {
      if (n_tokens_of(model_of(s).history) > 200) forget(s);
    }
    check_positions();
  }

  CapturedLog log_;
  std::shared_ptr<const LoadedModel> model_ = model_named(GetParam().model);
  std::optional<InferenceContext> context_;
  std::vector<Sequence> sequences_ = std::vector<Sequence>(kSequences);
  std::mt19937_64 random_;
  std::int64_t next_id_ = 0;
  int n_compared_ = 0;
  int n_joined_ = 0;  // tokens of several sequences
};

int steps() {
  const char* given = std::getenv("QUIPU_RANDOM_STEPS");
  return given == nullptr ? 300 : std::atoi(given);
}

TEST_P(RandomRun, HoldsWhatThePlainModelHolds) {
  const int n_steps = steps();
  constexpr int kStepsOfASeed = 100;
  for (int seed = 0; seed * kStepsOfASeed < n_steps; ++seed) {
    random_.seed(static_cast<std::uint64_t>(seed) * 977 + 1);
    sequences_.assign(kSequences, {});
    context_.emplace(model_, params(GetParam().n_ubatch));
    for (int i = 0; i < kStepsOfASeed; ++i) {
      step();
      if (HasFatalFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
  }
  EXPECT_GT(n_compared_, n_steps / 30);
  if (GetParam().unified) {
    EXPECT_GT(n_joined_, n_steps / 30);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, RandomRun,
    ::testing::Values(Case{.name = "shared", .model = "llama"},
                      Case{.name = "separate", .model = "llama", .unified = false, .n_ubatch = 5},
                      Case{.name = "windows",
                           .model = "gemma3-v-deep",
                           .n_ubatch = 8,
                           .swa_full = false,
                           .cache = ElementType::f32},
                      Case{.name = "quantized", .model = "quipu-mini", .cache = ElementType::q8_0}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace quipu::test
