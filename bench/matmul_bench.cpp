// Matrix products by instruction set and weight type on one thread: one token (bytes of weights per second,
// from memory: the weights are larger than the last cache) and 512 tokens (operations per second, a
// multiply-add being two). Run: matmul_bench [--benchmark_filter=/avx2/]
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/dispatch.h"
#include "backend/cpu/kernels/panel.h"
#include "backend/cpu/packed_matrix.h"
#include "base/aligned_buffer.h"
#include "quant/element_type.h"

namespace quipu::cpu {
namespace {

constexpr ElementType kTypes[] = {
    ElementType::f32,   ElementType::f16,  ElementType::bf16, ElementType::q4_0,   ElementType::q4_1,
    ElementType::q5_0,  ElementType::q5_1, ElementType::q8_0, ElementType::q2_k,   ElementType::q3_k,
    ElementType::q4_k,  ElementType::q5_k, ElementType::q6_k, ElementType::iq4_nl, ElementType::iq4_xs,
    ElementType::mxfp4, ElementType::nvfp4};

/// Weights whose bytes are noise, but for scales that keep everything finite.
PackedMatrix noise_matrix(ElementType type, std::size_t n_rows, std::size_t n_cols) {
  PackedMatrix matrix(type, 1, n_rows, n_cols);
  std::vector<std::byte> row(row_bytes(type, n_cols));
  std::mt19937 random(1);
  for (std::byte& byte : row) byte = static_cast<std::byte>(random() & 0x3b);  // no exponent of ones
  for (std::size_t r = 0; r < n_rows; ++r) matrix.set_rows(0, r, row);
  return matrix;
}

struct Product {
  Product(ElementType type, std::size_t n_rows, std::size_t n_cols, std::size_t n_tokens)
      : matrix(noise_matrix(type, n_rows, n_cols)), out(n_rows * n_tokens * sizeof(float)) {
    const ActivationFormat format = activation_format(type);
    const std::size_t stride = activation_row_bytes(format, n_cols);
    activations = AlignedBuffer(stride * n_tokens);
    std::vector<float> x(n_cols);
    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    const QuantizeKernel quantize = scalar_kernels().quantize(format);
    for (std::size_t t = 0; t < n_tokens; ++t) {
      for (float& value : x) value = normal(random);
      std::byte* row = activations.bytes().data() + t * stride;
      if (quantize == nullptr) {
        std::memcpy(row, x.data(), n_cols * sizeof(float));
      } else {
        quantize(x.data(), n_cols, row);
      }
    }
    task = {.panels = matrix.panel(0, 0),
            .panel_stride = matrix.panel_bytes(),
            .n_rows = n_rows,
            .n_cols = n_cols,
            .activations = activations.bytes().data(),
            .activation_stride = stride,
            .n_tokens = n_tokens,
            .out = out.as<float>().data(),
            .out_stride = n_rows};
  }

  PackedMatrix matrix;
  AlignedBuffer activations;
  AlignedBuffer out;
  MatmulTask task;
};

/// As many rows as make 96 MiB.
void one_token(benchmark::State& state, const KernelTable* table, ElementType type, std::size_t n_cols) {
  const std::size_t n_rows = (std::size_t{96} << 20) / panel_bytes(type, n_cols) * kPanelRows;
  Product product(type, n_rows, n_cols, 1);
  const MatmulKernel kernel = table->matmul(type);
  for (auto _ : state) kernel(product.task);
  state.counters["bytes/s"] = benchmark::Counter(static_cast<double>(product.matrix.bytes()),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}

void many_tokens(benchmark::State& state, const KernelTable* table, ElementType type, std::size_t n_cols,
                 std::size_t n_tokens) {
  constexpr std::size_t kRows = 1024;
  Product product(type, kRows, n_cols, n_tokens);
  const MatmulKernel kernel = table->matmul(type);
  for (auto _ : state) kernel(product.task);
  state.counters["op/s"] = benchmark::Counter(2.0 * static_cast<double>(kRows * n_cols * n_tokens),
                                              benchmark::Counter::kIsIterationInvariantRate);
}

void quantize_row(benchmark::State& state, const KernelTable* table, ActivationFormat format) {
  constexpr std::size_t kCols = 1024;
  std::vector<float> x(kCols);
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (float& value : x) value = normal(random);
  AlignedBuffer out(activation_row_bytes(format, kCols));
  const QuantizeKernel quantize = table->quantize(format);
  for (auto _ : state) quantize(x.data(), kCols, out.bytes().data());
  state.counters["elements/s"] =
      benchmark::Counter(static_cast<double>(kCols), benchmark::Counter::kIsIterationInvariantRate);
}

void pack_rows(benchmark::State& state, ElementType type) {
  constexpr std::size_t kRows = 256;
  constexpr std::size_t kCols = 1024;
  PackedMatrix matrix(type, 1, kRows, kCols);
  std::vector<std::byte> rows(row_bytes(type, kCols) * kRows, std::byte{0x35});
  for (auto _ : state) matrix.set_rows(0, 0, rows);
  state.counters["bytes/s"] =
      benchmark::Counter(static_cast<double>(rows.size()), benchmark::Counter::kIsIterationInvariantRate);
}

void register_products(const KernelTable* table) {
  const auto name = [&](std::string_view kind, std::string_view of) {
    return fmt::format("{}/{}/{}", kind, table->name, of);
  };
  for (const ElementType type : kTypes) {
    for (const std::size_t n_cols : {1024u, 3072u}) {
      const std::string shape = fmt::format("{}/{}", info(type).name, n_cols);
      benchmark::RegisterBenchmark(name("one_token", shape).c_str(), one_token, table, type, n_cols);
      benchmark::RegisterBenchmark(name("512_tokens", shape).c_str(), many_tokens, table, type, n_cols, 512);
    }
  }
  benchmark::RegisterBenchmark(name("quantize", "bf16").c_str(), quantize_row, table, ActivationFormat::bf16);
  benchmark::RegisterBenchmark(name("quantize", "q8_32").c_str(), quantize_row, table,
                               ActivationFormat::q8_32);
  benchmark::RegisterBenchmark(name("quantize", "q8_256").c_str(), quantize_row, table,
                               ActivationFormat::q8_256);
}

void register_all() {
  for (const KernelTable* table : runnable_kernels()) {
    if (table != &scalar_kernels()) register_products(table);  // which takes seconds for a product
  }
  for (const ElementType type : kTypes) {
    benchmark::RegisterBenchmark(fmt::format("pack/{}", info(type).name).c_str(), pack_rows, type);
  }
}

}  // namespace
}  // namespace quipu::cpu

int main(int argc, char** argv) {
  quipu::cpu::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
