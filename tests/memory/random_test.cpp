// Thousands of random operations against a model that is nothing but lists of cells.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "memory/test_memory.h"
#include "quipu/error.h"
#include "quipu/log.h"

namespace quipu::test {
namespace {

constexpr std::int32_t kOpen = INT32_MAX;

/// What the memory should hold: by sequence and place, position and tag.
class PlainMemory {
 public:
  struct Kept {
    std::int32_t position;
    std::int32_t tag;
    std::int32_t id;      // the same for all who share it
    std::int32_t first;   // position when it was computed
    std::int32_t turned;  // position that its key has been turned to
  };
  using Sequence = std::map<std::int32_t, Kept>;

  explicit PlainMemory(std::size_t n_sequences) : sequences_(n_sequences) {}

  Sequence& operator[](std::int32_t s) { return sequences_[static_cast<std::size_t>(s)]; }
  std::int32_t max_position(std::int32_t s) {
    std::int32_t highest = -1;
    for (const auto& [place, cell] : (*this)[s]) highest = std::max(highest, cell.position);
    return highest;
  }
  std::int32_t min_position(std::int32_t s) {
    std::int32_t lowest = -1;
    for (const auto& [place, cell] : (*this)[s]) {
      if (lowest < 0 || cell.position < lowest) lowest = cell.position;
    }
    return lowest;
  }
  void append(const std::vector<std::int32_t>& sequences, std::int32_t position, std::int32_t tag) {
    Sequence& first = (*this)[sequences[0]];
    const std::int32_t place = first.empty() ? 0 : first.rbegin()->first + 1;
    for (const std::int32_t s : sequences) (*this)[s][place] = {position, tag, n_ids, position, position};
    ++n_ids;
  }
  void remove(std::int32_t s, std::int32_t p0, std::int32_t p1) {
    std::erase_if((*this)[s], [&](const auto& entry) {
      return entry.second.position >= p0 && entry.second.position < p1;
    });
  }
  void copy(std::int32_t from, std::int32_t to, std::int32_t p0, std::int32_t p1) {
    if (from == to) return;
    remove(to, p0, p1);
    Sequence& target = (*this)[to];
    std::vector<Kept> colliding;
    Sequence arrived;
    for (const auto& [place, cell] : (*this)[from]) {
      if (cell.position < p0 || cell.position >= p1) continue;
      if (target.contains(place)) {
        colliding.push_back(cell);
      } else {
        arrived[place] = cell;
      }
    }
    target.merge(arrived);
    for (const Kept& cell : colliding) {
      const std::int32_t place = target.empty() ? 0 : target.rbegin()->first + 1;
      target[place] = cell;
    }
  }
  template <typename Change>
  void change(std::int32_t s, std::int32_t p0, std::int32_t p1, Change new_position) {
    std::map<std::int32_t, int> owners;
    for (const Sequence& sequence : sequences_) {
      for (const auto& [place, cell] : sequence) ++owners[cell.id];
    }
    for (auto& [place, cell] : (*this)[s]) {
      if (cell.position < p0 || cell.position >= p1) continue;
      const std::int32_t position = new_position(cell.position);
      if (position != cell.position && owners[cell.id] > 1) cell.id = n_ids++;
      cell.position = position;
    }
    std::erase_if((*this)[s], [](const auto& entry) { return entry.second.position < 0; });
  }
  /// What waits for these sequences is done; they part from others for whom it is not.
  void run(const std::set<std::int32_t>& sequences) {
    std::map<std::int32_t, std::int32_t> new_ids;
    for (std::int32_t s = 0; static_cast<std::size_t>(s) < sequences_.size(); ++s) {
      for (const auto& [place, cell] : (*this)[s]) {
        if (!sequences.contains(s) && cell.turned != cell.position) new_ids[cell.id] = -1;
      }
    }
    for (const std::int32_t s : sequences) {
      for (auto& [place, cell] : (*this)[s]) {
        cell.turned = cell.position;
        const auto waits = new_ids.find(cell.id);
        if (waits == new_ids.end()) continue;
        if (waits->second < 0) waits->second = n_ids++;
        cell.id = waits->second;
      }
    }
  }
  bool same(std::int32_t a, std::int32_t b) {
    const auto equal = [](const auto& x, const auto& y) {
      return x.first == y.first && x.second.id == y.second.id;
    };
    const Sequence &first = (*this)[a], &second = (*this)[b];
    return std::equal(first.begin(), first.end(), second.begin(), second.end(), equal);
  }
  std::vector<std::int32_t> turns(std::int32_t s) {
    std::vector<std::int32_t> result;
    for (const auto& [place, cell] : (*this)[s]) result.push_back(cell.turned - cell.first);
    return result;
  }
  std::size_t n_cells() const {
    std::set<std::int32_t> ids;
    for (const Sequence& sequence : sequences_) {
      for (const auto& [place, cell] : sequence) ids.insert(cell.id);
    }
    return ids.size();
  }
  std::vector<Cell> cells(std::int32_t s) {
    std::vector<Cell> result;
    for (const auto& [place, cell] : (*this)[s]) result.push_back({place, cell.position, cell.tag});
    return result;
  }

  std::int32_t n_ids = 0;

 private:
  std::vector<Sequence> sequences_;
};

/// Counts log lines while it lives.
class CapturedLines {
 public:
  CapturedLines() {
    set_log_sink([this](LogLevel, std::string_view) { ++n_lines; });
  }
  ~CapturedLines() { set_log_sink({}); }
  CapturedLines(const CapturedLines&) = delete;
  CapturedLines& operator=(const CapturedLines&) = delete;

  int n_lines = 0;
};

struct Setup {
  KvMemoryParams params;
  std::vector<std::uint32_t> windows{0};
};

class RandomTest {
 public:
  RandomTest(const Setup& setup, std::uint32_t seed)
      : setup_(setup),
        n_sequences_(static_cast<std::int32_t>(setup.params.n_sequences)),
        random_(seed),
        memory_(setup.params, setup.windows),
        plain_(setup.params.n_sequences) {}

  void step() {
    switch (below(13)) {
      case 12: below(2) == 0 ? save_and_restore() : restore_sequence(); break;
      case 10:
      case 11: change_positions(); break;
      case 0:
      case 1: remove(); break;
      case 2: copy(); break;
      case 3:
        if (below(12) == 0) keep();
        break;
      case 4:
        if (below(4) == 0) remove_everywhere();
        break;
      default: decode();
    }
    check();
  }

 private:
  std::int32_t below(std::int32_t n) {
    return std::uniform_int_distribution<std::int32_t>(0, n - 1)(random_);
  }
  std::int32_t any_sequence() { return below(n_sequences_); }
  bool windowed() const { return setup_.windows.size() > 1; }

  // Bounds as a caller gives them (negative: open) and what they mean.
  struct Range {
    std::int32_t p0, p1, begin, end;
  };
  Range any_range(std::int32_t s) {
    const std::int32_t top = plain_.max_position(s) + 2;
    Range range{below(top), below(top + 1), 0, 0};
    if (below(3) == 0) range.p0 = -1;
    if (below(2) == 0) range.p1 = -1;
    range.begin = std::max(range.p0, 0);
    range.end = range.p1 < 0 ? kOpen : range.p1;
    return range;
  }

  // One to three sequences that hold the same cells, if there are any.
  std::vector<std::int32_t> any_group() {
    std::vector<std::int32_t> group{any_sequence()};
    if (!setup_.params.unified) return group;
    for (std::int32_t i = 0; i < 2; ++i) {
      const std::int32_t other = any_sequence();
      if (std::find(group.begin(), group.end(), other) != group.end()) continue;
      const std::vector<std::int32_t> pair{group[0], other};
      const bool same = plain_.same(group[0], other);
      if (!windowed()) {
        EXPECT_EQ(memory_->same_cells(pair), same);
      }
      if (same && memory_->same_cells(pair)) group.push_back(other);
    }
    return group;
  }

  void decode() {
    std::vector<TestToken> tokens;
    std::map<std::int32_t, std::int32_t> next;
    const auto next_of = [&](std::int32_t s) {
      return next.contains(s) ? next[s] : plain_.max_position(s) + 1;
    };
    const std::vector<std::int32_t> group = any_group();
    const std::int32_t n_joined = below(20);
    for (std::int32_t i = 0; i <= n_joined; ++i) {
      tokens.push_back({next_of(group[0]), group});
      const std::int32_t position = tokens.back().position;
      for (const std::int32_t s : group) next[s] = position + 1;
    }
    const std::int32_t n_single = below(40);
    for (std::int32_t i = 0; i < n_single; ++i) {
      const std::int32_t s = any_sequence();
      tokens.push_back({next_of(s), {s}});
      next[s] = tokens.back().position + 1;
    }

    const std::size_t n_free = memory_->cells(0).n_free_pages();
    const std::int32_t tag = memory_.next_tag;
    const int fail_at = below(8) == 0 ? 0 : -1;
    PlainMemory after = plain_;
    std::set<std::int32_t> running;
    for (const TestToken& token : tokens) running.insert(token.sequences.begin(), token.sequences.end());
    after.run(running);
    const std::size_t n_pages = tokens.size() + (waits() ? 40 : 0);
    if (!memory_.decode(tokens, fail_at)) {
      EXPECT_TRUE(!has_room(after, tokens) || n_free < n_pages || windowed());
      return;
    }
    EXPECT_TRUE(has_room(after, tokens));
    plain_ = after;
    const std::size_t n_done = fail_at == 0 ? 0 : tokens.size();
    for (std::size_t i = 0; i < n_done; ++i) {
      plain_.append(tokens[i].sequences, tokens[i].position, tag + static_cast<std::int32_t>(i));
    }
  }

  /// Does anything wait for a run?
  bool waits() {
    for (std::int32_t s = 0; s < n_sequences_; ++s) {
      if (memory_->cells(0).is_waiting(s)) return true;
    }
    return false;
  }

  bool has_room(PlainMemory& plain, const std::vector<TestToken>& tokens) {
    if (setup_.params.unified) return plain.n_cells() + tokens.size() <= setup_.params.n_cells;
    for (std::int32_t s = 0; s < n_sequences_; ++s) {
      std::size_t n = plain[s].size();
      std::size_t n_new = 0;
      for (const TestToken& token : tokens) n_new += token.sequences[0] == s ? 1 : 0;
      if (n_new > 0 && n + n_new > setup_.params.n_cells) return false;
    }
    return true;
  }

  void remove() {
    const std::int32_t s = any_sequence();
    const Range range = any_range(s);
    PlainMemory after = plain_;
    after.remove(s, range.begin, range.end);
    const std::vector<bool> held = windows_held(s, after);
    const std::size_t n_free = memory_->cells(0).n_free_pages();
    const bool removed = memory_->remove(s, range.p0, range.p1);
    const bool all_held = std::find(held.begin(), held.end(), false) == held.end();
    if (removed) {
      EXPECT_TRUE(all_held) << "positions " << range.begin << " to " << range.end;
      plain_ = after;
    } else {
      // Each end of the range may need a page of its own.
      EXPECT_TRUE(!all_held || std::min(n_free, least_free_pages_) < 2);
    }
  }

  // For each windowed part: does it hold all that the sequence's next position will see?
  std::vector<bool> windows_held(std::int32_t s, PlainMemory& after) {
    std::vector<bool> held;
    const std::int32_t next = after.max_position(s) + 1;
    least_free_pages_ = SIZE_MAX;
    for (std::size_t part = 1; part < setup_.windows.size(); ++part) {
      const auto cells = memory_.cells(s, part);
      const auto window = static_cast<std::int32_t>(setup_.windows[part]);
      bool all = true;
      for (const Cell& cell : after.cells(s)) {
        if (cell.position <= next - window) continue;
        all = all && std::any_of(cells.begin(), cells.end(),
                                 [&](const Cell& held_cell) { return held_cell.place == cell.place; });
      }
      held.push_back(all);
      least_free_pages_ = std::min(least_free_pages_, memory_->cells(part).n_free_pages());
    }
    return held;
  }

  void remove_everywhere() {
    const Range range = any_range(any_sequence());
    if (!memory_->remove(kAnySequence, range.p0, range.p1)) {
      EXPECT_TRUE(windowed());
      return;
    }
    for (std::int32_t s = 0; s < n_sequences_; ++s) plain_.remove(s, range.begin, range.end);
  }

  void copy() {
    const std::int32_t from = any_sequence();
    const std::int32_t to = any_sequence();
    const Range range = below(2) == 0 ? Range{-1, -1, 0, kOpen} : any_range(from);
    if (range.begin >= range.end) return;
    const std::size_t n_free = memory_->cells(0).n_free_pages();
    try {
      memory_->copy(from, to, range.p0, range.p1);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::out_of_memory) {
        EXPECT_TRUE(n_free < 32 || windowed());
      } else {
        EXPECT_EQ(error.code(), ErrorCode::unsupported);
        EXPECT_TRUE(windowed());
      }
      return;
    }
    plain_.copy(from, to, range.begin, range.end);
  }

  void change_positions() {
    const std::int32_t s = any_sequence();
    const Range range = any_range(s);
    PlainMemory after = plain_;
    const std::int32_t number = below(4) == 0 ? 1 + below(3) : below(60) - 40;
    const bool divide = number > 0 && below(4) == 0;
    after.change(s, range.begin, range.end, [&](std::int32_t position) {
      return divide ? position / number : std::max(position + number, -1);
    });
    const std::vector<bool> held = windows_held(s, after);
    const bool all_held = std::find(held.begin(), held.end(), false) == held.end();
    CapturedLines log;
    if (divide) {
      memory_->divide(s, range.p0, range.p1, number);
    } else {
      memory_->add(s, range.p0, range.p1, number);
    }
    EXPECT_EQ(log.n_lines, all_held ? 0 : 1);
    if (!all_held) return;
    plain_ = after;
  }

  // Goes on with another memory in the same state.
  void save_and_restore() {
    TestMemory other(setup_.params, setup_.windows);
    try {
      other.restore(memory_.save());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.message();
      EXPECT_TRUE(waits());
      return;
    }
    other.next_tag = memory_.next_tag;
    memory_ = std::move(other);
  }

  void restore_sequence() {
    const std::int32_t from = any_sequence();
    const std::int32_t to = any_sequence();
    PlainMemory after = plain_;
    after[to] = plain_[from];
    for (auto& [place, cell] : after[to]) cell.id = after.n_ids++;
    try {
      memory_.restore(memory_.save({.sequence = from}), {.sequence = to});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.message();
      EXPECT_TRUE(after.n_cells() > setup_.params.n_cells || memory_->cells(0).n_free_pages() < 40);
      return;
    }
    plain_ = after;
  }

  void keep() {
    const std::int32_t kept = any_sequence();
    memory_->keep(kept);
    for (std::int32_t s = 0; s < n_sequences_; ++s) {
      if (s != kept) plain_.remove(s, 0, kOpen);
    }
  }

  void check() {
    for (std::int32_t s = 0; s < n_sequences_; ++s) {
      ASSERT_EQ(memory_.cells(s), plain_.cells(s)) << "sequence " << s;
      ASSERT_EQ(memory_->max_position(s), plain_.max_position(s));
      ASSERT_EQ(memory_->cells(0).n_cells_of(s), plain_[s].size());
      if (!windowed()) {
        ASSERT_EQ(memory_->min_position(s), plain_.min_position(s));
      }
      for (std::size_t part = 1; part < setup_.windows.size(); ++part) check_window(s, part);
    }
    ASSERT_EQ(memory_->cells(0).n_used_cells(), plain_.n_cells());
    for (std::int32_t s = 0; s < n_sequences_; ++s) ASSERT_EQ(memory_.turns(s), plain_.turns(s));
    for (std::size_t part = 0; part < setup_.windows.size(); ++part) check_pages(part);
  }

  // A windowed part holds some of the cells, at the same places, and surely those that the next token sees.
  void check_window(std::int32_t s, std::size_t part) {
    const auto all = plain_.cells(s);
    const auto held = memory_.cells(s, part);
    for (const Cell& cell : held) ASSERT_NE(std::find(all.begin(), all.end(), cell), all.end()) << cell;
    const std::int32_t horizon = plain_.max_position(s) + 1 - static_cast<std::int32_t>(setup_.windows[part]);
    for (const Cell& cell : all) {
      if (cell.position <= horizon) continue;
      ASSERT_NE(std::find(held.begin(), held.end(), cell), held.end())
          << "part " << part << " lacks " << cell;
    }
    ASSERT_EQ(memory_->cells(part).n_cells_of(s), held.size());
  }

  // Every page is free or in a table.
  void check_pages(std::size_t part) {
    std::set<std::int32_t> pages;
    for (std::int32_t s = 0; s < n_sequences_; ++s) {
      for (const std::int32_t page : memory_->cells(part).page_table(s)) {
        if (page >= 0) pages.insert(memory_->cells(part).data_page(page));
      }
    }
    ASSERT_EQ(pages.size() + memory_->cells(part).n_free_pages(), memory_->cells(part).config().n_pages);
    if (setup_.params.unified && !waits()) {
      ASSERT_LE(memory_->cells(part).n_used_cells(), memory_->cells(part).config().n_cells);
    }
  }

  Setup setup_;
  std::int32_t n_sequences_;
  std::mt19937 random_;
  TestMemory memory_;
  PlainMemory plain_;
  std::size_t least_free_pages_ = SIZE_MAX;  // of windowed parts
};

void run(const Setup& setup, int n_steps) {
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTest test(setup, seed);
    for (int i = 0; i < n_steps && !::testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE("step " + std::to_string(i));
      test.step();
    }
  }
}

TEST(KvMemoryAtRandom, UnifiedHoldsWhatThePlainModelHolds) {
  run({.params = {.n_sequences = 5, .n_cells = 512, .unified = true, .n_ubatch = 16}}, 1500);
}

TEST(KvMemoryAtRandom, PerSequenceHoldsWhatThePlainModelHolds) {
  run({.params = {.n_sequences = 4, .n_cells = 256, .unified = false, .n_ubatch = 16}}, 1500);
}

TEST(KvMemoryAtRandom, WindowedPartsHoldWhatCanBeSeen) {
  run({.params = {.n_sequences = 4, .n_cells = 2048, .unified = true, .n_ubatch = 16}, .windows = {0, 40, 7}},
      1500);
}

TEST(KvMemoryAtRandom, WindowedPartsOfEachSequenceHoldWhatCanBeSeen) {
  run({.params = {.n_sequences = 3, .n_cells = 1024, .unified = false, .n_ubatch = 16}, .windows = {0, 100}},
      1500);
}

}  // namespace
}  // namespace quipu::test
