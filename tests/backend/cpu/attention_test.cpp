// Attention: the vector kernel against the scalar one bit for bit, the scalar one against a softmax in double
// precision, and what may not change a bit: other queries, page numbers, cells that are not visible.
#include "backend/cpu/kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/attention_scene.h"
#include "backend/cpu/kernel_tables.h"
#include "backend/cpu/kernels/kernels.h"
#include "base/aligned_buffer.h"

namespace quipu::cpu {
namespace {

using attention_scene::cell_number;
using attention_scene::Scene;
using attention_scene::Settings;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::string describe(const Settings& s) {
  return "length " + std::to_string(s.length) + ", queries " + std::to_string(s.n_queries) + ", dims " +
         std::to_string(s.k_dim) + " and " + std::to_string(s.v_dim) + ", group " + std::to_string(s.group) +
         ", K " + std::string(info(s.k_type).name) + ", V " + std::string(info(s.v_type).name) + ", window " +
         std::to_string(s.window) +
         (s.chunked_window     ? " in chunks"
          : s.symmetric_window ? " both ways"
                               : "") +
         (s.causal ? "" : ", not causal") + (s.slopes ? ", slopes" : "") + ", bias radius " +
         std::to_string(s.bias_radius) + ", soft-cap " + std::to_string(s.soft_cap) +
         (s.sinks ? ", sinks" : "") + ", holes " + std::to_string(s.holes);
}

const std::vector<ElementType> kCacheTypes = {ElementType::f32,  ElementType::f16,  ElementType::bf16,
                                              ElementType::q8_0, ElementType::q5_1, ElementType::q5_0,
                                              ElementType::q4_1, ElementType::q4_0, ElementType::iq4_nl};

/// Shapes of every kind, drawn at random, small ones more often.
std::vector<Settings> shapes(std::size_t count) {
  std::mt19937 random(7);
  const auto one_of = [&random](const auto& choices) { return choices[random() % choices.size()]; };
  const std::vector<std::size_t> dims = {8, 16, 24, 64, 80, 128, 256, 5, 36};
  const std::vector<std::size_t> block_dims = {32, 64, 96, 128, 160, 576};
  const std::vector<std::size_t> groups = {1, 2, 3, 4, 8};
  const std::vector<std::size_t> lengths = {1,   2,   15,  16,  17,  63,  64,  65,
                                            100, 255, 256, 257, 300, 512, 530, 700};
  const std::vector<std::size_t> queries = {1, 1, 2, 3, 5, 7, 8, 16, 31, 32, 33};
  std::vector<Settings> all;
  for (std::size_t i = 0; i < count; ++i) {
    Settings s;
    s.k_type = one_of(kCacheTypes);
    s.v_type = random() % 3 == 0 ? one_of(kCacheTypes) : s.k_type;
    const auto dim_of = [&](ElementType type) {
      return one_of(is_cache_block_type(type) ? block_dims : dims);
    };
    s.k_dim = dim_of(s.k_type);
    s.v_dim = random() % 3 == 0 || is_cache_block_type(s.v_type) ? dim_of(s.v_type) : s.k_dim;
    s.group = one_of(groups);
    s.length = one_of(lengths);
    s.n_queries = one_of(queries);
    if (s.n_queries * s.group * s.length * s.k_dim > 4000000) s.n_queries = 2;  // the scalar kernel is slow
    s.window = one_of(std::vector<std::int32_t>{0, 0, 1, 16, 50, 300});
    s.causal = random() % 3 != 0;
    s.symmetric_window = random() % 3 == 0;
    s.chunked_window = random() % 4 == 0;
    s.slopes = random() % 5 == 0;
    s.bias_radius = one_of(std::vector<std::int32_t>{-1, -1, -1, 0, 1, 20, 128});
    s.soft_cap = one_of(std::vector<float>{0, 0, 0, 2, 50});
    s.sinks = random() % 4 == 0;
    s.holes = one_of(std::vector<unsigned>{0, 0, 2, 10});
    s.later = random() % 3 == 0 ? random() % 100 : 0;
    s.page_seed = static_cast<unsigned>(random());
    s.q_range = one_of(std::vector<float>{0.1f, 2, 20});
    all.push_back(s);
  }
  return all;
}

class Attention : public testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table() const { return *GetParam(); }
  std::vector<float> run(const Settings& settings) const { return Scene(settings).run(table()); }
};

INSTANTIATE_TEST_SUITE_P(, Attention, testing::ValuesIn(test::kernel_tables()),
                         [](const auto& tested) { return test::name_of(tested.param); });

TEST(VectorAttention, IsTheScalarOneBitForBit) {
  for (const Settings& settings : shapes(300)) {
    const Scene scene(settings);
    const std::vector<float> expected = scene.run(scalar_kernels());
    for (const KernelTable* table : test::vector_tables()) {
      ASSERT_TRUE(same_bits(scene.run(*table), expected)) << table->name << ": " << describe(settings);
    }
  }
}

TEST_P(Attention, IsTheSoftmaxOfItsDefinition) {
  for (const Settings& settings : shapes(80)) {
    const Scene scene(settings);
    const std::vector<float> expected = scene.reference();
    const std::vector<float> actual = scene.run(table());
    ASSERT_EQ(expected.size(), actual.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(expected[i], actual[i], 2e-5) << describe(settings) << ", element " << i;
    }
  }
}

TEST_P(Attention, AQueryDoesNotDependOnTheOthersInItsTask) {
  for (const std::size_t group : {1u, 2u, 8u}) {
    const Settings settings{
        .length = 300, .n_queries = 33, .k_dim = 24, .v_dim = 24, .group = group, .holes = 9};
    const Scene scene(settings);
    const std::vector<float> together = scene.run(table());
    const std::size_t row = group * settings.v_dim;
    for (std::size_t first = 0, count = 1; first < scene.n_queries(); first += count, count = count % 5 + 1) {
      const std::size_t n = std::min(count, scene.n_queries() - first);
      const std::vector<float> part = scene.run(table(), first, n);
      const std::vector<float> same(together.begin() + static_cast<std::ptrdiff_t>(first * row),
                                    together.begin() + static_cast<std::ptrdiff_t>((first + n) * row));
      ASSERT_TRUE(same_bits(part, same)) << first << ", " << n;
    }
  }
}

TEST_P(Attention, AQueryAloneGetsTheBitsThatItGetsAmongManyForEveryType) {
  for (const ElementType type : kCacheTypes) {
    const Settings settings{.length = 300,
                            .n_queries = 9,
                            .k_dim = 64,
                            .v_dim = 96,
                            .group = 4,
                            .k_type = type,
                            .v_type = type,
                            .slopes = true,
                            .holes = 9};
    const Scene scene(settings);
    const std::vector<float> together = scene.run(table());
    const std::size_t row = settings.group * settings.v_dim;
    for (std::size_t query = 0; query < scene.n_queries(); ++query) {
      const auto first = together.begin() + static_cast<std::ptrdiff_t>(query * row);
      EXPECT_TRUE(same_bits(scene.run(table(), query, 1),
                            std::vector<float>(first, first + static_cast<std::ptrdiff_t>(row))))
          << info(type).name << ", " << query;
    }
  }
}

TEST_P(Attention, ASymmetricWindowSeesHalfOfItToEachSide) {
  Settings settings{.length = 300, .n_queries = 290, .k_dim = 8, .v_dim = 8, .window = 21, .causal = false};
  settings.symmetric_window = true;
  const Scene scene(settings);
  const std::vector<float> expected = scene.reference();
  const std::vector<float> actual = scene.run(table());
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(expected[i], actual[i], 2e-5) << i;
  settings.window = 20;  // the half is rounded down
  EXPECT_TRUE(same_bits(actual, run(settings)));
  settings.window = 22;
  EXPECT_FALSE(same_bits(actual, run(settings)));
}

TEST_P(Attention, AChunkedWindowSeesItsOwnChunkAlone) {
  for (const bool causal : {true, false}) {
    Settings settings{
        .length = 300, .n_queries = 290, .k_dim = 8, .v_dim = 8, .window = 48, .causal = causal};
    settings.chunked_window = true;
    const Scene scene(settings);
    const std::vector<float> expected = scene.reference();
    const std::vector<float> actual = scene.run(table());
    for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(expected[i], actual[i], 2e-5) << i;
    settings.chunked_window = false;
    EXPECT_FALSE(same_bits(actual, run(settings)));
  }
}

TEST_P(Attention, PageNumbersDoNotMatter) {
  Settings settings{.length = 300, .n_queries = 5, .k_dim = 24, .v_dim = 40, .holes = 9};
  const std::vector<float> expected = run(settings);
  for (unsigned seed = 2; seed < 8; ++seed) {
    settings.page_seed = seed;
    EXPECT_TRUE(same_bits(expected, run(settings))) << seed;
  }
}

TEST_P(Attention, WhatEmptyCellsHoldDoesNotMatter) {
  Settings settings{.length = 300, .n_queries = 5, .k_dim = 24, .v_dim = 40, .holes = 3};
  const std::vector<float> expected = run(settings);
  settings.hidden_seed = 9;
  EXPECT_TRUE(same_bits(expected, run(settings)));
}

TEST_P(Attention, CellsOfTheFutureDoNotMatter) {
  Settings settings{.length = 200, .n_queries = 5, .k_dim = 24, .v_dim = 40};
  const std::vector<float> expected = run(settings);
  for (const std::size_t later : {1u, 20u, 70u, 400u}) {
    settings.later = later;
    EXPECT_TRUE(same_bits(expected, run(settings))) << later;
  }
}

/// One kv head, one query after 600 places of which only some are in the window; the others may be there or
/// not.
std::vector<float> windowed(const KernelTable& table, bool keep_hidden, float hidden_value) {
  constexpr std::size_t kDim = 16;
  constexpr std::int32_t kLength = 600;
  constexpr std::int32_t kWindow = 130;
  const KvLayout layout{ElementType::f32, ElementType::f32, 1, kDim, kDim};
  std::vector<std::int32_t> pages(kLength / 16 + 1, -1);
  AlignedBuffer cache(pages.size() * layout.page_bytes());
  std::vector<std::int32_t> positions(pages.size() * kPageSlots, -1);
  for (std::int32_t place = 0; place < kLength; ++place) {
    const bool seen = place > kLength - 1 - kWindow;
    if (!seen && !keep_hidden) continue;
    const std::size_t page = static_cast<std::size_t>(place) / kPageSlots;
    pages[page] = static_cast<std::int32_t>(page);
    positions[static_cast<std::size_t>(place)] = place;
    std::vector<float> cell(kDim);
    for (std::size_t d = 0; d < kDim; ++d) {
      cell[d] = seen ? cell_number(static_cast<std::size_t>(place), 0, d, 1) * 1e-30f : hidden_value;
    }
    store_cell(layout, cache.bytes().data() + page * layout.page_bytes(),
               static_cast<std::size_t>(place) % 16, cell.data(), cell.data());
  }
  const AttentionQuery query{kLength - 1, kLength - 1};
  const std::vector<float> q(kDim, 3e31f);
  std::vector<float> out(kDim);
  AlignedBuffer scratch(attention_scratch_bytes(layout, 1, 1));
  AttentionTask task{};
  task.layout = &layout;
  task.cache = cache.bytes().data();
  task.pages = pages;
  task.cell_positions = positions.data();
  task.queries = {&query, 1};
  task.q = q.data();
  task.q_stride = kDim;
  task.group = 1;
  task.out = out.data();
  task.out_stride = kDim;
  task.scale = 1;
  task.window = kWindow;
  task.causal = true;
  task.scratch = scratch.bytes();
  table.attention(task);
  return out;
}

TEST_P(Attention, CellsBehindTheWindowMayBeGone) {
  const std::vector<float> expected = windowed(table(), false, 0);
  for (const float hidden : {1.0f, -1.0f, 3e38f, -3e38f}) {
    EXPECT_TRUE(same_bits(expected, windowed(table(), true, hidden))) << hidden;
  }
}

TEST_P(Attention, EqualPositionsAreOrderedByPlace) {
  const KvLayout layout{ElementType::f32, ElementType::f32, 1, 1, 1};
  AlignedBuffer cache(layout.page_bytes());
  const std::vector<std::int32_t> pages = {0};
  std::vector<std::int32_t> positions(kPageSlots, -1);
  for (std::size_t slot = 0; slot < 4; ++slot) {
    const float k = 0;
    const float v = static_cast<float>(slot + 1);
    store_cell(layout, cache.bytes().data(), slot, &k, &v);
    positions[slot] = 7;
  }
  const std::vector<AttentionQuery> queries = {{7, 0}, {7, 1}, {7, 3}, {8, 0}};
  const std::vector<float> q(4, 1.0f);
  std::vector<float> out(4);
  AlignedBuffer scratch(attention_scratch_bytes(layout, 4, 1));
  AttentionTask task{};
  task.layout = &layout;
  task.cache = cache.bytes().data();
  task.pages = pages;
  task.cell_positions = positions.data();
  task.queries = queries;
  task.q = q.data();
  task.q_stride = 1;
  task.group = 1;
  task.out = out.data();
  task.out_stride = 1;
  task.scale = 1;
  task.causal = true;
  task.scratch = scratch.bytes();
  table().attention(task);
  EXPECT_EQ(out, (std::vector<float>{1, 1.5f, 2.5f, 2.5f}));
}

TEST_P(Attention, AZeroIsPositiveWhetherCellsThatAddNothingAreSkippedOrNot) {
  constexpr float kLeast = 0x1p-149f;
  struct Cell {
    std::size_t place;
    float k;
    float v;
  };
  // Weighted down, the least negative number rounds to -0, in the first chunk and in the second; adding the
  // zeros of a third chunk, which is in the future, would make +0 of it.
  const std::vector<Cell> cells = {{0, -1, -kLeast}, {256, 1, 0}, {271, -1, -kLeast}, {512, 0, 1}};
  const KvLayout layout{ElementType::f32, ElementType::f32, 1, 1, 1};
  std::vector<std::int32_t> pages(512 / kPageSlots + 1, -1);
  std::vector<std::int32_t> positions(pages.size() * kPageSlots, -1);
  AlignedBuffer cache(pages.size() * layout.page_bytes());
  AlignedBuffer scratch(attention_scratch_bytes(layout, 1, 1));
  for (const Cell& cell : cells) {
    const std::size_t page = cell.place / kPageSlots;
    store_cell(layout, cache.bytes().data() + page * layout.page_bytes(), cell.place % kPageSlots, &cell.k,
               &cell.v);
    pages[page] = static_cast<std::int32_t>(page);
    positions[cell.place] = static_cast<std::int32_t>(cell.place);
    const AttentionQuery query{300, 300};
    const float q = 3;
    std::vector<float> out(1, 7.0f);
    AttentionTask task{};
    task.layout = &layout;
    task.cache = cache.bytes().data();
    task.pages = pages;
    task.cell_positions = positions.data();
    task.queries = {&query, 1};
    task.q = &q;
    task.q_stride = 1;
    task.group = 1;
    task.out = out.data();
    task.out_stride = 1;
    task.scale = 1;
    task.causal = true;
    task.scratch = scratch.bytes();
    table().attention(task);
    if (cell.place > 256) {
      EXPECT_TRUE(same_bits(out, {0.0f})) << cell.place;
    }
  }
}

TEST_P(Attention, OfNothingVisibleIsZero) {
  for (const bool sinks : {false, true}) {
    const Settings settings{.length = 40, .n_queries = 3, .k_dim = 16, .v_dim = 20, .sinks = sinks};
    Settings empty = settings;
    empty.window = 1;
    empty.holes = 1;  // every cell but the last, which only the last query sees
    const std::vector<float> out = run(empty);
    const std::size_t unseen = 2 * settings.group * settings.v_dim;
    EXPECT_TRUE(same_bits(std::vector<float>(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(unseen)),
                          std::vector<float>(unseen, 0.0f)))
        << sinks;
    EXPECT_NE(out.back(), 0.0f);
  }
}

TEST_P(Attention, ExtremeScoresStayFinite) {
  for (const float range : {1e6f, 1e30f, 1e37f}) {
    const Settings settings{.length = 300, .n_queries = 4, .k_dim = 16, .v_dim = 16, .q_range = range};
    for (const float x : run(settings)) ASSERT_LE(std::fabs(x), 1.31f) << range;
  }
}

TEST_P(Attention, EqualScoresAverageTheValues) {
  const Settings settings{.length = 300, .n_queries = 1, .k_dim = 16, .v_dim = 16, .q_range = 0};
  const Scene scene(settings);
  const std::vector<float> expected = scene.reference();
  const std::vector<float> actual = scene.run(table());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(expected[i], actual[i], 1e-6);
}

TEST_P(Attention, CellsAreFiniteWhateverIsStored) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> k = {infinity, -infinity, std::nanf(""), 1e6f, -65510.0f, 0.1f};
  for (const ElementType type : {ElementType::f32, ElementType::f16}) {
    const bool f32 = type == ElementType::f32;
    const float limit = f32 ? std::numeric_limits<float>::max() : 65504.0f;
    const KvLayout layout{type, type, 2, 3, 3};
    AlignedBuffer page(layout.page_bytes());
    table().store_cell(layout, page.bytes().data(), 5, k.data(), k.data());
    std::vector<float> keys(6);
    std::vector<float> values(6);
    load_cell(layout, page.bytes().data(), 5, keys.data(), values.data());
    const std::vector<float> expected = {
        limit, -limit, 0.0f, f32 ? 1e6f : limit, f32 ? -65510.0f : -limit, f32 ? 0.1f : 0x1.998p-4f};
    EXPECT_EQ(keys, expected);
    EXPECT_EQ(values, expected);
  }
}

TEST(KvLayout, StoredCellsAreTheSameBytesInEveryTable) {
  std::vector<float> x(2 * 300);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::ldexp(cell_number(i, 0, 0, 1), static_cast<int>(i % 50) - 30);
  for (const ElementType type : kCacheTypes) {
    const bool has_blocks = is_cache_block_type(type);
    const KvLayout layout{type, type, 2, has_blocks ? 96u : 37u, has_blocks ? 288u : 300u};
    const auto page = [&](const KernelTable& table) {
      AlignedBuffer stored(layout.page_bytes());
      for (std::size_t slot = 0; slot < kPageSlots; ++slot) {
        table.store_cell(layout, stored.bytes().data(), slot, x.data() + slot, x.data());
      }
      return std::vector<std::byte>(stored.bytes().begin(), stored.bytes().end());
    };
    const std::vector<std::byte> expected = page(scalar_kernels());
    for (const KernelTable* table : test::vector_tables()) {
      EXPECT_EQ(page(*table), expected) << table->name << ", " << info(type).name;
    }
  }
}

/// Numbers as caches meet them, and blocks made to break an encoder: constant, of one sign, with one number
/// in them, tiny, huge, not finite.
std::vector<float> odd_blocks(std::size_t n_blocks) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> x(n_blocks * kCellBlock);
  for (std::size_t b = 0; b < n_blocks; ++b) {
    const float size = std::ldexp(1.0f, static_cast<int>(random() % 40) - 30);
    for (std::size_t i = 0; i < kCellBlock; ++i) {
      float& number = x[b * kCellBlock + i];
      number = normal(random) * size;
      switch (b % 24) {
        case 1: number = size; break;
        case 2: number = -size; break;
        case 3: number = i == 7 ? -size : 0; break;
        case 4: number = i % 2 == 0 ? size : -size; break;
        case 5: number = std::fabs(number); break;
        case 6: number = -std::fabs(number); break;
        case 7: number = number * 1e-38f; break;
        case 8: number = number / size * 1e38f; break;
        case 9: number = i == 3 ? std::numeric_limits<float>::infinity() : number; break;
        case 10: number = i == 3 ? std::nanf("") : number; break;
        case 11: number = 0; break;
        case 12: number = -0.0f; break;
        case 13: number = size * static_cast<float>(static_cast<int>(i) - 16); break;
        case 14: number = 1000 + number; break;
        case 15: number = std::ldexp(number, static_cast<int>(i) - 16); break;
        case 16: number = static_cast<float>(random() % 3) * size; break;
        case 17: number = number / size * 1e-7f; break;
        default: break;
      }
    }
  }
  return x;
}

TEST(CellEncoding, IsTheSameBytesInEveryTable) {
  constexpr std::size_t kBlocks = 24 * 100 + 5;
  const std::vector<float> x = odd_blocks(kBlocks);
  for (const ElementType type : kCacheTypes) {
    std::vector<std::byte> expected(row_bytes(type, x.size()));
    scalar_kernels().encode_cells(type, x.data(), x.size(), expected.data());
    const std::size_t size = row_bytes(type, kCellBlock);
    for (const KernelTable* table : test::vector_tables()) {
      std::vector<std::byte> actual(expected.size());
      table->encode_cells(type, x.data(), x.size(), actual.data());
      for (std::size_t b = 0; b < kBlocks; ++b) {
        ASSERT_EQ(std::memcmp(expected.data() + b * size, actual.data() + b * size, size), 0)
            << table->name << ", " << info(type).name << ", block " << b << ", kind " << b % 24;
      }
    }
  }
}

TEST(KvLayout, HeadsStartOnCacheLines) {
  const KvLayout layout{ElementType::f16, ElementType::f16, 3, 5, 20};
  EXPECT_EQ(layout.k_bytes(), 5u * 16 * 2);
  EXPECT_EQ(layout.v_bytes(), 16u * 32 * 2);
  EXPECT_EQ(layout.page_bytes(), 3 * (192u + 1024));  // the sum rounded up
}

}  // namespace
}  // namespace quipu::cpu
