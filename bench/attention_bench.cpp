// Attention for reading a prompt (GFLOP/s, counting only what is visible) and for generating (GB/s of keys and values
// that come from memory) with all cache types, storing cells, and exp, with the kernels that QUIPU_CPU names. An
// argument names the table; threads share the key/value heads.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "backend/cpu/kernels/attention.h"
#include "backend/cpu/kernels/dispatch.h"
#include "base/aligned_buffer.h"

namespace quipu::cpu {
namespace {

struct Shape {
  std::size_t n_kv_heads = 8;
  std::size_t group = 2;
  std::size_t k_dim = 128;
  std::size_t v_dim = 128;
  std::size_t n_places = 0;
  std::size_t n_queries = 1;  ///< the last ones of the places
  std::size_t n_layers = 1;   ///< more than one: so many that the caches hold none of them
  ElementType type = ElementType::f16;

  KvLayout layout() const { return {type, type, n_kv_heads, k_dim, v_dim}; }
  std::size_t q_row() const { return n_kv_heads * group * k_dim; }
  std::size_t out_row() const { return n_kv_heads * group * v_dim; }
  std::size_t n_pages() const { return (n_places + kPageSlots - 1) / kPageSlots; }
  double flops() const {  // query i sees i + 1 places
    const double visible =
        static_cast<double>(n_queries) * static_cast<double>(2 * n_places - n_queries + 1) / 2;
    return visible * 2 * static_cast<double>(q_row() + out_row());
  }
  double bytes() const { return static_cast<double>(n_pages() * layout().page_bytes()); }
  /// Heads of a group in one task: of wide latent heads not all, as the step maker has it.
  std::size_t task_heads() const {
    return k_dim > 256
               ? std::max<std::size_t>(1, std::min<std::size_t>(group, 64 / std::min(n_queries, kQueryBlock)))
               : group;
  }
};

/// A sequence of consecutive places in consecutive pages, in every layer.
class Sequence {
 public:
  explicit Sequence(const Shape& shape)
      : shape_(shape),
        layout_(shape.layout()),
        pages_(shape.n_pages()),
        positions_(pages_.size() * kPageSlots, -1),
        cache_(shape.n_layers * pages_.size() * layout_.page_bytes()),
        q_(shape.n_queries * shape.q_row()) {
    std::iota(pages_.begin(), pages_.end(), 0);
    std::iota(positions_.begin(), positions_.begin() + static_cast<std::ptrdiff_t>(shape.n_places), 0);
    for (std::size_t i = 0; i < q_.size(); ++i) q_[i] = 0.1f * std::cos(static_cast<float>(i % 5003));
    std::vector<float> cell(shape.n_kv_heads * std::max(shape.k_dim, shape.v_dim));
    for (std::size_t i = 0; i < cell.size(); ++i) cell[i] = std::sin(static_cast<float>(i));
    for (std::size_t page = 0; page < shape.n_layers * pages_.size(); ++page) {
      std::byte* at = cache_.bytes().data() + page * layout_.page_bytes();
      for (std::size_t slot = 0; slot < kPageSlots; ++slot)
        store_cell(layout_, at, slot, cell.data(), cell.data());
    }
    for (std::size_t place = shape.n_places - shape.n_queries; place < shape.n_places; ++place) {
      queries_.push_back({static_cast<std::int32_t>(place), static_cast<std::int32_t>(place)});
    }
  }

  /// The part of a thread: its key/value heads, all queries in blocks, in one layer.
  void compute(const KernelTable& table, std::size_t layer, std::size_t thread, std::size_t n_threads,
               std::vector<float>& out, AlignedBuffer& scratch) const {
    const std::size_t task_heads = shape_.task_heads();
    const std::size_t n_parts = (shape_.group + task_heads - 1) / task_heads;
    for (std::size_t part = thread; part < shape_.n_kv_heads * n_parts; part += n_threads) {
      const std::size_t first_head = part % n_parts * task_heads;
      const std::size_t head = part / n_parts * shape_.group + first_head;
      for (std::size_t first = 0; first < shape_.n_queries; first += kQueryBlock) {
        AttentionTask task{};
        task.layout = &layout_;
        task.cache = cache_.bytes().data() + layer * pages_.size() * layout_.page_bytes();
        task.kv_head = part / n_parts;
        task.pages = pages_;
        task.cell_positions = positions_.data();
        task.queries = std::span(queries_).subspan(first, std::min(kQueryBlock, shape_.n_queries - first));
        task.q = q_.data() + first * shape_.q_row() + head * shape_.k_dim;
        task.q_stride = shape_.q_row();
        task.group = std::min(task_heads, shape_.group - first_head);
        task.out = out.data() + first * shape_.out_row() + head * shape_.v_dim;
        task.out_stride = shape_.out_row();
        task.scale = 0.1f;
        task.causal = true;
        task.scratch = scratch.bytes();
        table.attention(task);
      }
    }
  }

 private:
  Shape shape_;
  KvLayout layout_;
  std::vector<std::int32_t> pages_;
  std::vector<std::int32_t> positions_;
  AlignedBuffer cache_;
  std::vector<float> q_;
  std::vector<AttentionQuery> queries_;
};

void run(benchmark::State& state, const Shape& shape, bool count_bytes) {
  static const Sequence* shared =
      nullptr;  // thread 0 makes it before and ends it after the loop, where all meet
  if (state.thread_index() == 0) shared = new Sequence(shape);
  const std::size_t n_threads = static_cast<std::size_t>(state.threads());
  const std::size_t thread = static_cast<std::size_t>(state.thread_index());
  std::vector<float> out(shape.n_queries * shape.out_row());
  AlignedBuffer scratch(attention_scratch_bytes(shape.layout(), kQueryBlock, shape.task_heads()));
  std::size_t layer = 0;
  for ([[maybe_unused]] auto _ : state) {
    shared->compute(kernels(), layer, thread, n_threads, out, scratch);
    layer = (layer + 1) % shape.n_layers;
  }
  const double work = (count_bytes ? shape.bytes() : shape.flops()) / static_cast<double>(n_threads);
  state.counters[count_bytes ? "bytes" : "flop"] =
      benchmark::Counter(work * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate,
                         benchmark::Counter::kIs1000);
  if (state.thread_index() == 0) {
    delete shared;
    shared = nullptr;
  }
}

constexpr ElementType kTypes[] = {ElementType::f16,  ElementType::bf16, ElementType::q8_0,
                                  ElementType::q5_1, ElementType::q4_0, ElementType::iq4_nl,
                                  ElementType::f32};

ElementType type_of(benchmark::State& state, std::size_t argument) {
  const ElementType type = kTypes[static_cast<std::size_t>(state.range(argument))];
  state.SetLabel(std::string(info(type).name));
  return type;
}

/// Arguments: tokens before the 512 queries, number of the type.
void prefill(benchmark::State& state) {
  const std::size_t depth = static_cast<std::size_t>(state.range(0));
  run(state, {.n_places = depth + 512, .n_queries = 512, .type = type_of(state, 1)}, false);
}
BENCHMARK(prefill)
    ->ArgsProduct({{0, 2048}, {0, 1, 2, 3, 4, 5, 6}})
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

/// Arguments: depth, query heads for each key/value head, head dimension, number of the type.
void decode(benchmark::State& state) {
  const std::size_t dim = static_cast<std::size_t>(state.range(2));
  const Shape shape{.group = static_cast<std::size_t>(state.range(1)),
                    .k_dim = dim,
                    .v_dim = dim,
                    .n_places = static_cast<std::size_t>(state.range(0)),
                    .n_layers = 24,
                    .type = type_of(state, 3)};
  run(state, shape, true);
}
BENCHMARK(decode)
    ->ArgsProduct({{2048}, {1, 2, 4, 8}, {128}, {0, 2}})
    ->ArgsProduct({{2048}, {2}, {128}, {1, 3, 4, 5, 6}})
    ->Args({2048, 4, 64, 0})
    ->Args({2048, 2, 256, 0})
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

/// One key/value head for 16 query heads, keys of 576, values of 512 (latent attention). Arguments: queries
/// at the end of 2048 tokens, number of the type.
void latent(benchmark::State& state) {
  const std::size_t n_queries = static_cast<std::size_t>(state.range(0));
  run(state,
      {.n_kv_heads = 1,
       .group = 16,
       .k_dim = 576,
       .v_dim = 512,
       .n_places = 2048,
       .n_queries = n_queries,
       .n_layers = n_queries == 1 ? 24u : 1u,
       .type = type_of(state, 1)},
      n_queries == 1);
}
BENCHMARK(latent)
    ->ArgsProduct({{1, 512}, {0, 2}})
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

/// 512 cells of 8 heads. Argument: number of the type.
void store_cells(benchmark::State& state) {
  const ElementType type = type_of(state, 0);
  const KvLayout layout{type, type, 8, 128, 128};
  AlignedBuffer pages(32 * layout.page_bytes());
  std::vector<float> cell(8 * 128);
  for (std::size_t i = 0; i < cell.size(); ++i) cell[i] = std::sin(static_cast<float>(i));
  for ([[maybe_unused]] auto _ : state) {
    for (std::size_t i = 0; i < 512; ++i) {
      store_cell(layout, pages.bytes().data() + i / 16 * layout.page_bytes(), i % 16, cell.data(),
                 cell.data());
    }
  }
  state.counters["cells"] =
      benchmark::Counter(512.0 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(store_cells)->DenseRange(0, 6)->Unit(benchmark::kMicrosecond);

using RowOperation = void (*)(const KernelTable&, const float*, std::size_t, float*);

void row(benchmark::State& state, const char* table, RowOperation operation) {
  std::vector<float> x(4096);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 5 * std::sin(static_cast<float>(i));
  std::vector<float> out(x.size());
  const KernelTable& kernel_table = choose_kernels(table);
  for ([[maybe_unused]] auto _ : state) {
    operation(kernel_table, x.data(), x.size(), out.data());
    benchmark::ClobberMemory();
  }
  state.counters["elements"] = benchmark::Counter(
      static_cast<double>(x.size()) * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

// Softmax is exp with a maximum before and a division after it; sigmoid is exp and a division.
BENCHMARK_CAPTURE(row, softmax_scalar, "scalar",
                  [](const KernelTable& t, const float* x, std::size_t n, float* out) {
                    t.softmax(x, n, out);
                  });
BENCHMARK_CAPTURE(row, softmax, "", [](const KernelTable& t, const float* x, std::size_t n, float* out) {
  t.softmax(x, n, out);
});
BENCHMARK_CAPTURE(row, sigmoid, "", [](const KernelTable& t, const float* x, std::size_t n, float* out) {
  t.sigmoid(x, n, out);
});
BENCHMARK_CAPTURE(row, gelu, "", [](const KernelTable& t, const float* x, std::size_t n, float* out) {
  t.activate(GatedActivation::gelu_tanh, x, n, out);
});
BENCHMARK_CAPTURE(row, soft_cap, "", [](const KernelTable& t, const float* x, std::size_t n, float* out) {
  t.soft_cap(x, 30, n, out);
});
BENCHMARK_CAPTURE(row, rms_norm, "", [](const KernelTable& t, const float* x, std::size_t n, float* out) {
  t.rms_norm(x, nullptr, 1e-6f, n, out);
});

}  // namespace
}  // namespace quipu::cpu
