// Products of every instruction set against a reference that is written here from the file's blocks, bit for
// bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "backend/cpu/kernel_tables.h"
#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/panel.h"
#include "backend/cpu/packed_matrix.h"
#include "backend/cpu/weights.h"
#include "base/aligned_buffer.h"

namespace quipu::cpu {
namespace {

// ---- The reference
// -----------------------------------------------------------------------------------------------

template <typename T>
T element(const std::byte* from, std::size_t i) {
  T value;
  std::memcpy(&value, from + i * sizeof(T), sizeof(T));
  return value;
}

float flushed(float value) {
  return std::fabs(value) < FLT_MIN ? std::copysign(0.0f, value) : value;
}

float dot_bf16(const std::byte* weights, const std::byte* x, std::size_t n_cols) {
  float sum = 0.0f;
  for (std::size_t pair = 0; pair < n_cols; pair += 2) {
    for (std::size_t k = pair + 2; k-- > pair;) {
      const float w = k < n_cols ? bf16_to_f32(element<std::uint16_t>(weights, k)) : 0.0f;
      const float y = k < n_cols ? bf16_to_f32(element<std::uint16_t>(x, k)) : 0.0f;
      sum = flushed(std::fma(flushed(w), flushed(y), sum));
    }
  }
  return sum;
}

template <typename Block>
float dot_block32(const Block& block, const ActivationBlock32& x, float sum) {
  std::int32_t product = 0;
  std::int32_t x_sum = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    if constexpr (std::is_same_v<Block, BlockQ8_0>) {
      product += block.qs[i] * x.quants[i];
    } else if constexpr (requires { Block::kValues; }) {
      product += Block::kValues[unpack_quants(block)[i]] * x.quants[i];
    } else {
      product += (unpack_quants(block)[i] - Block::kZeroPoint) * x.quants[i];
    }
    x_sum += x.quants[i];
  }
  float scale = 0;
  if constexpr (requires { block.d; }) {
    scale = f16_to_f32(block.d);
  } else {
    scale = mxfp4_scale(block.scale);
  }
  sum = std::fma(static_cast<float>(product), scale * x.scale, sum);
  if constexpr (requires { block.m; }) {
    sum = std::fma(static_cast<float>(x_sum), f16_to_f32(block.m) * x.scale, sum);
  }
  return sum;
}

/// Half a block, and its runs.
float dot_nvfp4(const BlockNVFP4& block, std::size_t half, const ActivationBlock32& x, float sum) {
  const Quants64 quants = unpack_quants(block);
  for (std::size_t run = 0; run < 2; ++run) {
    std::int32_t product = 0;
    for (std::size_t i = 16 * run; i < 16 * run + 16; ++i) {
      product += BlockNVFP4::kValues[quants[32 * half + i]] * x.quants[i];
    }
    sum = std::fma(static_cast<float>(product), nvfp4_scale(block.scales[2 * half + run]) * x.scale, sum);
  }
  return sum;
}

template <typename Block>
float dot_block256(const Block& block, const ActivationBlock256& x, float sum) {
  const auto quants = unpack_quants(block);
  const auto scales = unpack_scales(block);
  std::int32_t product = 0;
  std::int32_t minimum = 0;
  for (std::size_t i = 0; i < 256; ++i) {
    const auto scale = scales[i / Block::kRun];
    if constexpr (requires { block.dmin; }) {
      product += scale.scale * quants[i] * x.quants[i];
      minimum += scale.min * x.quants[i];
    } else if constexpr (requires { Block::kValues; }) {
      product += scale * Block::kValues[quants[i]] * x.quants[i];
    } else {
      product += scale * (quants[i] - Block::kZeroPoint) * x.quants[i];
    }
  }
  sum = std::fma(static_cast<float>(product), f16_to_f32(block.d) * x.scale, sum);
  if constexpr (requires { block.dmin; }) {
    sum = std::fma(static_cast<float>(minimum), -(f16_to_f32(block.dmin) * x.scale), sum);
  }
  return sum;
}

float reference_dot(ElementType type, const std::byte* weights, const std::byte* x, std::size_t n_cols) {
  float sum = 0.0f;
  if (type == ElementType::bf16) return dot_bf16(weights, x, n_cols);
  if (info(type).block_elements == 1) {
    for (std::size_t k = 0; k < n_cols; ++k) {
      const float w = type == ElementType::f32 ? element<float>(weights, k)
                                               : f16_to_f32(element<std::uint16_t>(weights, k));
      sum = std::fma(w, element<float>(x, k), sum);
    }
    return sum;
  }
  test::with_block(type, [&]<typename Block>(Block) {
    for (std::size_t i = 0; i < n_cols / Block::kElements; ++i) {
      const Block block = load_block<Block>(weights + i * sizeof(Block));
      if constexpr (Block::kElements == 32) {
        sum = dot_block32(block, activation_block32(x, i), sum);
      } else if constexpr (Block::kElements == 64) {
        sum = dot_nvfp4(block, 0, activation_block32(x, 2 * i), sum);
        sum = dot_nvfp4(block, 1, activation_block32(x, 2 * i + 1), sum);
      } else {
        sum = dot_block256(block, activation_block256(x, i), sum);
      }
    }
  });
  return sum;
}

// ---- A product with everything around it poisoned
// ----------------------------------------------------------------

struct Case {
  ElementType type;
  std::size_t n_rows;
  std::size_t n_cols;
  std::size_t n_tokens;
  std::vector<std::byte> weights;  ///< the file's bytes
  std::vector<float> x;            ///< [n_tokens, n_cols]
};

std::vector<float> noise(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& value : x) value = normal(random);
  return x;
}

Case random_case(ElementType type, std::size_t n_rows, std::size_t n_cols, std::size_t n_tokens) {
  return {type,
          n_rows,
          n_cols,
          n_tokens,
          test::random_weights(type, n_rows, n_cols, static_cast<std::uint32_t>(n_cols + n_rows)),
          noise(n_tokens * n_cols, static_cast<std::uint32_t>(n_tokens))};
}

/// Rows in the format that the type takes; between them, and behind them, bytes of ones (NaN, as floats).
struct Activations {
  Activations(const Case& tested, const KernelTable& kernels)
      : format(activation_format(tested.type)),
        stride(activation_row_bytes(format, tested.n_cols) + 64),
        storage(stride * tested.n_tokens) {
    std::memset(storage.bytes().data(), 0xff, storage.size());
    for (std::size_t t = 0; t < tested.n_tokens; ++t) {
      const float* x = tested.x.data() + t * tested.n_cols;
      if (format == ActivationFormat::f32) {
        std::memcpy(row(t), x, tested.n_cols * sizeof(float));
      } else {
        kernels.quantize(format)(x, tested.n_cols, row(t));
      }
    }
  }
  std::byte* row(std::size_t token) { return storage.bytes().data() + token * stride; }

  ActivationFormat format;
  std::size_t stride;
  AlignedBuffer storage;
};

/// Panels with bytes of ones between and behind them, and in the rows that the last one has too many.
struct Panels {
  explicit Panels(const Case& tested) {
    PackedMatrix matrix(tested.type, 1, tested.n_rows, tested.n_cols);
    matrix.set_rows(0, 0, tested.weights);
    stride = matrix.panel_bytes() + 128;
    storage = AlignedBuffer(stride * matrix.n_panels());
    std::memset(storage.bytes().data(), 0xff, storage.size());
    for (std::size_t i = 0; i < matrix.n_panels(); ++i) {
      std::memcpy(storage.bytes().data() + i * stride, matrix.panel(0, i), matrix.panel_bytes());
    }
    const std::vector<std::byte> ones(row_bytes(tested.type, tested.n_cols), std::byte{0xff});
    std::byte* last = storage.bytes().data() + (matrix.n_panels() - 1) * stride;
    for (std::size_t lane = tested.n_rows % kPanelRows; lane % kPanelRows != 0; ++lane) {
      write_panel_row(tested.type, tested.n_cols, ones.data(), lane, last);
    }
  }
  std::size_t stride = 0;
  AlignedBuffer storage;
};

constexpr std::size_t kOutPadding = 5;
constexpr float kUntouched = -12345.0f;

/// [n_tokens, n_rows]; checks that nothing else was written.
std::vector<float> product(const KernelTable& kernels, const Case& tested, const Panels& panels,
                           Activations& activations, std::size_t first_token, std::size_t n_tokens) {
  const std::size_t out_stride = tested.n_rows + kOutPadding;
  std::vector<float> out(out_stride * n_tokens, kUntouched);
  kernels.matmul(tested.type)({.panels = panels.storage.bytes().data(),
                               .panel_stride = panels.stride,
                               .n_rows = tested.n_rows,
                               .n_cols = tested.n_cols,
                               .activations = activations.row(first_token),
                               .activation_stride = activations.stride,
                               .n_tokens = n_tokens,
                               .out = out.data(),
                               .out_stride = out_stride});
  std::vector<float> result;
  for (std::size_t t = 0; t < n_tokens; ++t) {
    for (std::size_t r = 0; r < out_stride; ++r) {
      if (r < tested.n_rows) {
        result.push_back(out[t * out_stride + r]);
      } else {
        EXPECT_EQ(out[t * out_stride + r], kUntouched);
      }
    }
  }
  return result;
}

std::vector<float> product(const KernelTable& kernels, const Case& tested) {
  Activations activations(tested, kernels);
  return product(kernels, tested, Panels(tested), activations, 0, tested.n_tokens);
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

void expect_reference(const KernelTable& kernels, const Case& tested) {
  Activations activations(tested, kernels);
  const auto given = product(kernels, tested, Panels(tested), activations, 0, tested.n_tokens);
  const std::size_t row = row_bytes(tested.type, tested.n_cols);
  for (std::size_t t = 0; t < tested.n_tokens; ++t) {
    for (std::size_t r = 0; r < tested.n_rows; ++r) {
      const float expected =
          reference_dot(tested.type, tested.weights.data() + r * row, activations.row(t), tested.n_cols);
      const float result = given[t * tested.n_rows + r];
      ASSERT_TRUE(same_bits(result, expected))
          << result << " instead of " << expected << ": token " << t << " of " << tested.n_tokens << ", row "
          << r << " of " << tested.n_rows << ", " << tested.n_cols << " columns";
    }
  }
}

// ---- Tests
// -------------------------------------------------------------------------------------------------------

using Param = std::tuple<const KernelTable*, ElementType>;

class MatmulWith : public testing::TestWithParam<Param> {
 protected:
  const KernelTable& kernels() const { return *std::get<0>(GetParam()); }
  ElementType type() const { return std::get<1>(GetParam()); }
  std::size_t widest() const { return test::interesting_widths(type()).back(); }
};

INSTANTIATE_TEST_SUITE_P(All, MatmulWith,
                         testing::Combine(testing::ValuesIn(test::kernel_tables()),
                                          testing::ValuesIn(test::decodable_types())),
                         [](const auto& tested) {
                           return test::name_of(std::get<0>(tested.param)) + "_" +
                                  std::string(quipu::info(std::get<1>(tested.param)).name);
                         });

TEST_P(MatmulWith, GivesTheReferencesBitsForAnyNumberOfTokens) {
  for (const std::size_t n_tokens : {1u, 2u, 3u, 5u, 7u, 8u, 9u, 31u, 32u, 33u, 64u}) {
    expect_reference(kernels(), random_case(type(), 33, test::interesting_widths(type())[1], n_tokens));
  }
}

TEST_P(MatmulWith, GivesTheReferencesBitsForAnyShape) {
  for (const std::size_t n_rows : {1u, 7u, 8u, 9u, 15u, 16u, 17u, 33u}) {
    for (const std::size_t n_cols : test::interesting_widths(type())) {
      for (const std::size_t n_tokens : {1u, 4u, 9u}) {
        expect_reference(kernels(), random_case(type(), n_rows, n_cols, n_tokens));
      }
    }
  }
}

TEST_P(MatmulWith, ATokensResultDoesNotDependOnTheOthers) {
  const Case tested = random_case(type(), 19, widest(), 420);
  const Panels panels(tested);
  Activations activations(tested, kernels());
  const auto together = product(kernels(), tested, panels, activations, 0, tested.n_tokens);
  for (const std::size_t begin : {0u, 1u, 6u, 100u, 255u, 310u, 419u}) {
    const auto alone = product(kernels(), tested, panels, activations, begin, 1);
    for (std::size_t r = 0; r < tested.n_rows; ++r) {
      ASSERT_TRUE(same_bits(alone[r], together[begin * tested.n_rows + r])) << begin << " " << r;
    }
  }
}

TEST_P(MatmulWith, ARowsResultDoesNotDependOnTheOthers) {
  const Case tested = random_case(type(), 48, widest(), 7);
  const Panels panels(tested);
  Activations activations(tested, kernels());
  const auto together = product(kernels(), tested, panels, activations, 0, tested.n_tokens);
  Case last = tested;  // the third panel alone
  last.n_rows = 16;
  last.weights.erase(last.weights.begin(), last.weights.begin() + static_cast<std::ptrdiff_t>(
                                                                      32 * row_bytes(type(), tested.n_cols)));
  const auto alone = product(kernels(), last, Panels(last), activations, 0, tested.n_tokens);
  for (std::size_t t = 0; t < tested.n_tokens; ++t) {
    for (std::size_t r = 0; r < 16; ++r) ASSERT_TRUE(same_bits(alone[t * 16 + r], together[t * 48 + 32 + r]));
  }
}

TEST_P(MatmulWith, NoTokensWriteNothing) {
  Case tested = random_case(type(), 16, widest(), 1);
  const Panels panels(tested);
  Activations activations(tested, kernels());
  EXPECT_TRUE(product(kernels(), tested, panels, activations, 0, 0).empty());
}

TEST_P(MatmulWith, TakesTheLargestQuantsAndScales) {
  for (const std::byte fill : {std::byte{0x00}, std::byte{0xff}, std::byte{0x7f}, std::byte{0x80}}) {
    Case tested = random_case(type(), 16, test::interesting_widths(type())[2], 9);
    if (info(type()).block_elements > 1) {
      std::fill(tested.weights.begin(), tested.weights.end(), fill);
      std::mt19937 random(7);
      // Zero, the largest, both signs, the least subnormal.
      const std::uint16_t halves[] = {0x0000, 0x7bff, 0xfbff, 0x0001, 0x3c00};
      test::set_scales(type(), tested.weights, [&] { return halves[random() % 5]; });
    }
    for (std::size_t i = 0; i < tested.x.size(); ++i) tested.x[i] = i % 3 == 0 ? -1.0f : 1.0f;
    expect_reference(kernels(), tested);
  }
}

TEST_P(MatmulWith, TakesHugeTinyAndZeroInputs) {
  Case tested = random_case(type(), 17, test::interesting_widths(type())[2], 6);
  const float sizes[] = {0.0f, 1e-42f, 1e-36f, 1e-28f, 1e28f, 3e38f};
  for (std::size_t t = 0; t < 6; ++t) {
    for (std::size_t k = 0; k < tested.n_cols; ++k) {
      float& x = tested.x[t * tested.n_cols + k];
      x = std::clamp(x * sizes[t], -FLT_MAX, FLT_MAX);
    }
  }
  expect_reference(kernels(), tested);
}

TEST_P(MatmulWith, ABadInputIsSeenInEveryOutputOfItsTokenAndInNoOther) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Case tested = random_case(type(), 17, test::interesting_widths(type())[2], 8);
    const std::vector<float> good = product(kernels(), tested);
    tested.x[5 * tested.n_cols + 3] = bad;
    const std::vector<float> given = product(kernels(), tested);
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (i / tested.n_rows == 5) {
        EXPECT_FALSE(std::isfinite(given[i]));
      } else {
        EXPECT_TRUE(same_bits(given[i], good[i]));
      }
    }
  }
}

TEST_P(MatmulWith, IsCloseToTheProductOfTheDecodedNumbers) {
  const Case tested = random_case(type(), 16, widest(), 2);
  PackedMatrix matrix(type(), 1, 16, tested.n_cols);
  matrix.set_rows(0, 0, tested.weights);
  const auto given = product(kernels(), tested);
  std::vector<float> w(tested.n_cols);
  for (std::size_t r = 0; r < 16; ++r) {
    std::vector<std::byte> scratch(row_bytes(matrix.type(), matrix.n_cols()));
    matrix.decode_row(0, r, w, scratch);
    for (std::size_t t = 0; t < 2; ++t) {
      double sum = 0;
      double size = 0;
      for (std::size_t k = 0; k < tested.n_cols; ++k) {
        sum += double{w[k]} * double{tested.x[t * tested.n_cols + k]};
        size += double{w[k]} * double{w[k]};
      }
      EXPECT_NEAR(given[t * 16 + r], sum, 0.03 * std::sqrt(size));  // the inputs have unit variance
    }
  }
}

TEST(Matmul, IntegersHaveNoKernel) {
  for (const KernelTable* kernels : test::kernel_tables())
    EXPECT_EQ(kernels->matmul(ElementType::i32), nullptr) << kernels->name;
}

}  // namespace
}  // namespace quipu::cpu
