// Storage of keys and values on the CPU: what a cell is set to is what is got, for every type; keys that are
// turned; memory as the types promise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "backend/cpu/storage.h"
#include "backend/device.h"
#include "base/error.h"
#include "graph/ops/rope.h"
#include "quant/quant.h"

namespace quipu::cpu {
namespace {

using testing::HasSubstr;

constexpr ElementType kTypes[] = {ElementType::f32,  ElementType::f16,  ElementType::bf16,
                                  ElementType::q8_0, ElementType::q5_1, ElementType::q5_0,
                                  ElementType::q4_1, ElementType::q4_0, ElementType::iq4_nl};

std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<std::byte> encoded(ElementType type, const std::vector<float>& values) {
  std::vector<std::byte> bytes(row_bytes(type, values.size()));
  encode_row(type, values, bytes);
  return bytes;
}

std::vector<std::byte> operator+(std::vector<std::byte> a, const std::vector<std::byte>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<std::byte> cell_of(const KvStorage& storage, std::int32_t page, std::int32_t slot) {
  std::vector<std::byte> bytes(storage.cell_bytes());
  storage.get_cell(page, slot, bytes);
  return bytes;
}

/// The keys of a cell, decoded.
std::vector<float> keys_of(const KvStorage& storage, std::int32_t page, std::int32_t slot) {
  const KvShape shape = storage.shape();
  const std::vector<std::byte> bytes = cell_of(storage, page, slot);
  std::vector<float> keys(shape.n_kv_heads * shape.k_dim);
  decode_row(shape.k_type, std::span(bytes).first(row_bytes(shape.k_type, keys.size())), keys);
  return keys;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

std::string message_of(auto&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

class KvStorageOf : public testing::TestWithParam<ElementType> {
 protected:
  static constexpr std::size_t kHeads = 3;

  KvPages pages(std::size_t k_dim = 64, std::size_t v_dim = 96) const {
    return KvPages({GetParam(), GetParam(), kHeads, k_dim, v_dim}, 4);
  }
  /// A cell's bytes from random numbers.
  std::vector<std::byte> random_cell(const KvStorage& storage, unsigned seed) const {
    const KvShape shape = storage.shape();
    return encoded(GetParam(), random_floats(kHeads * shape.k_dim, seed)) +
           encoded(GetParam(), random_floats(kHeads * shape.v_dim, seed + 100));
  }
  static std::vector<double> frequencies(std::size_t n) {
    std::vector<double> list;
    for (std::size_t i = 0; i < n; ++i) list.push_back(std::pow(0.01, static_cast<double>(i) / n));
    return list;
  }
  /// How far a number is off after having been encoded.
  double precision() const {
    switch (GetParam()) {
      case ElementType::f32: return 1e-6;
      case ElementType::f16: return 1e-3;
      case ElementType::q8_0:
      case ElementType::bf16: return 1e-2;
      case ElementType::q5_0:
      case ElementType::q5_1: return 0.06;
      default: return 0.11;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(, KvStorageOf, testing::ValuesIn(kTypes),
                         [](const auto& test) { return std::string(quipu::info(test.param).name); });

TEST_P(KvStorageOf, GivesBackTheBytesThatACellWasSetTo) {
  KvPages storage = pages();
  for (std::int32_t slot = 0; slot < 16; ++slot) {
    storage.set_cell(2, slot, random_cell(storage, static_cast<unsigned>(slot)));
  }
  for (std::int32_t slot = 0; slot < 16; ++slot) {
    EXPECT_EQ(cell_of(storage, 2, slot), random_cell(storage, static_cast<unsigned>(slot))) << slot;
  }
}

TEST_P(KvStorageOf, StoresNumbersAsEncodeRowEncodesThem) {
  KvPages storage = pages();
  const std::vector<float> k = random_floats(kHeads * 64, 1);
  const std::vector<float> v = random_floats(kHeads * 96, 2);
  store_cell(storage.layout(), storage.page(1), 7, k.data(), v.data());
  EXPECT_EQ(cell_of(storage, 1, 7), encoded(GetParam(), k) + encoded(GetParam(), v));
}

TEST_P(KvStorageOf, CopiesCellsAndPagesExactly) {
  KvPages storage = pages();
  const std::vector<std::byte> cell = random_cell(storage, 1);
  storage.set_cell(0, 3, cell);
  storage.copy_cell(0, 3, 2, 9);
  storage.copy_page(2, 1);
  EXPECT_EQ(cell_of(storage, 1, 9), cell);
  EXPECT_EQ(cell_of(storage, 1, 3), cell_of(storage, 3, 3));  // as new
}

TEST_P(KvStorageOf, ANewCellIsZero) {
  const KvPages storage = pages();
  EXPECT_EQ(cell_of(storage, 3, 15), std::vector<std::byte>(storage.cell_bytes()));
}

TEST_P(KvStorageOf, ClearsToNew) {
  KvPages storage = pages();
  storage.set_cell(3, 15, random_cell(storage, 1));
  storage.clear();
  EXPECT_EQ(cell_of(storage, 3, 15), std::vector<std::byte>(storage.cell_bytes()));
}

TEST_P(KvStorageOf, TakesTheMemoryThatTheTypePromises) {
  const KvPages storage = pages(128, 128);
  EXPECT_EQ(storage.bytes(), 4 * 16 * storage.cell_bytes());
  EXPECT_EQ(storage.cell_bytes(), row_bytes(GetParam(), kHeads * 256));
}

TEST_P(KvStorageOf, OnlyCountsWhereNothingBacksIt) {
  const KvShape shape{GetParam(), GetParam(), kHeads, 64, 96};
  EXPECT_EQ(KvPages(shape, 4, Backing::none).bytes(), KvPages(shape, 4).bytes());
  const std::size_t more_than_there_is = std::size_t{1} << 40;
  KvPages counted(shape, more_than_there_is, Backing::none);
  EXPECT_EQ(counted.bytes() / more_than_there_is, KvPages(shape, 1).bytes());
  std::vector<std::byte> cell(counted.cell_bytes());
  EXPECT_THROW(counted.get_cell(0, 0, cell), Error);
}

TEST_P(KvStorageOf, KeysTurnedThereAndBackAreWhereTheyWere) {
  for (const RopeStyle style : {RopeStyle::halves, RopeStyle::interleaved}) {
    KvPages storage = pages();
    storage.set_cell(1, 4, random_cell(storage, 1));
    const std::vector<float> before = keys_of(storage, 1, 4);
    const KeyRotation rotation{frequencies(32), style, 0};
    const CellShift there{1, 4, 12345};
    const CellShift back{1, 4, -12345};
    storage.rotate_keys({&there, 1}, rotation);
    EXPECT_GT(distance(keys_of(storage, 1, 4), before), 0.5);
    storage.rotate_keys({&back, 1}, rotation);
    EXPECT_LT(distance(keys_of(storage, 1, 4), before), 2 * precision());
  }
}

TEST_P(KvStorageOf, ATurnedKeyIsTheOneStoredAtTheOtherPosition) {
  constexpr std::int32_t kFrom = 700;
  constexpr std::int32_t kTo = 13;
  constexpr std::size_t kDim = 64;
  const std::vector<double> turns = frequencies(kDim / 2);
  const std::vector<float> raw = random_floats(kHeads * kDim, 5);
  const std::vector<float> v(kHeads * 96, 1.0f);
  const auto rotated = [&](std::int32_t position) {
    std::vector<float> key = raw;
    for (std::size_t i = 0; i < key.size(); i += kDim) {
      for (std::size_t pair = 0; pair < kDim / 2; ++pair) {
        float& a = key[i + pair];
        float& b = key[i + pair + kDim / 2];
        const double angle = position * turns[pair];
        const double x = a;
        const double y = b;
        a = static_cast<float>(x * std::cos(angle) - y * std::sin(angle));
        b = static_cast<float>(x * std::sin(angle) + y * std::cos(angle));
      }
    }
    return key;
  };
  KvPages storage = pages(kDim);
  store_cell(storage.layout(), storage.page(0), 0, rotated(kFrom).data(), v.data());
  const CellShift shift{0, 0, kTo - kFrom};
  storage.rotate_keys({&shift, 1}, {turns, RopeStyle::halves, 0});
  EXPECT_LT(distance(keys_of(storage, 0, 0), rotated(kTo)), 2 * precision());
}

TEST_P(KvStorageOf, TurnsOnlyTheRotatedPartOfTheCellsListed) {
  KvPages storage = pages(96);
  storage.set_cell(1, 4, random_cell(storage, 1));
  storage.set_cell(1, 5, random_cell(storage, 2));
  const std::vector<float> before = keys_of(storage, 1, 4);
  const std::vector<std::byte> other = cell_of(storage, 1, 5);
  const std::vector<CellShift> shifts = {{1, 4, 3}, {1, 5, 0}};
  storage.rotate_keys(shifts, {frequencies(8), RopeStyle::halves, 64});
  const std::vector<float> after = keys_of(storage, 1, 4);
  for (std::size_t head = 0; head < kHeads; ++head) {
    const std::size_t at = head * 96;
    EXPECT_EQ(std::memcmp(&before[at], &after[at], 64 * sizeof(float)), 0) << head;
    EXPECT_NE(before[at + 64], after[at + 64]) << head;
  }
  EXPECT_EQ(cell_of(storage, 1, 5), other);
}

TEST(KvStorage, TypesOfKeysAndValuesAreChosenApart) {
  KvPages storage({ElementType::q8_0, ElementType::q4_0, 2, 32, 64}, 1);
  const std::vector<std::byte> cell = encoded(ElementType::q8_0, random_floats(2 * 32, 1)) +
                                      encoded(ElementType::q4_0, random_floats(2 * 64, 2));
  storage.set_cell(0, 0, cell);
  EXPECT_EQ(cell_of(storage, 0, 0), cell);
}

TEST(KvStorage, RefusesDimsThatAreNotWholeBlocks) {
  const auto device = create_cpu_device();
  EXPECT_THAT(message_of([&] {
                device->create_kv({ElementType::f16, ElementType::q8_0, 1, 16, 16}, 1);
              }),
              HasSubstr("values of 16 elements cannot be of type Q8_0"));
  EXPECT_THAT(message_of([&] {
                device->create_kv({ElementType::q4_0, ElementType::f16, 1, 80, 16}, 1);
              }),
              HasSubstr("keys of 80 elements cannot be of type Q4_0"));
}

TEST(KvStorage, RefusesTypesThatAreNoCacheTypes) {
  const auto device = create_cpu_device();
  EXPECT_THAT(message_of([&] {
                device->create_kv({ElementType::q6_k, ElementType::f16, 1, 256, 256}, 1);
              }),
              HasSubstr("keys of type Q6_K"));
}

TEST(KvStorage, RefusesWhatDoesNotFitTheAddressSpace) {
  const auto device = create_cpu_device();
  constexpr std::size_t kHuge = std::numeric_limits<std::size_t>::max() / 64;
  EXPECT_THROW(device->create_kv({ElementType::f16, ElementType::f16, kHuge, 64, 64}, 1), Error);
  EXPECT_THROW(device->create_kv({ElementType::f16, ElementType::f16, 1, kHuge / 32 * 32, 64}, 1), Error);
  EXPECT_THROW(device->create_kv({ElementType::f16, ElementType::f16, 1, 64, 64}, kHuge), Error);
}

}  // namespace
}  // namespace quipu::cpu
