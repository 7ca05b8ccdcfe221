// Attention for reading a prompt (GFLOP/s, counting only what is visible) and for generating (GB/s of keys
// and values that come from memory), storing cells, and exp. An argument names the table; threads share the
// key/value heads.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "backend/cpu/kernels/attention.h"
#include "backend/cpu/kernels/dispatch.h"
#include "base/aligned_buffer.h"

namespace quipu::cpu {
namespace {

struct Shape {
  std::size_t n_kv_heads = 8;
  std::size_t group = 2;
  std::size_t head_dim = 128;
  std::size_t n_places = 0;
  std::size_t n_queries = 1;  ///< the last ones of the places
  std::size_t n_layers = 1;   ///< more than one: so many that the caches hold none of them
  ElementType type = ElementType::f16;
};

/// A sequence of consecutive places in consecutive pages, in every layer.
class Sequence {
 public:
  explicit Sequence(const Shape& shape)
      : shape_(shape),
        layout_{shape.type, shape.type, shape.n_kv_heads, shape.head_dim, shape.head_dim},
        pages_((shape.n_places + kPageSlots - 1) / kPageSlots),
        positions_(pages_.size() * kPageSlots, -1),
        cache_(shape.n_layers * pages_.size() * layout_.page_bytes()),
        q_(shape.n_queries * row(), 0.01f) {
    std::iota(pages_.begin(), pages_.end(), 0);
    std::iota(positions_.begin(), positions_.begin() + static_cast<std::ptrdiff_t>(shape.n_places), 0);
    std::vector<float> cell(shape.n_kv_heads * shape.head_dim);
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
    for (std::size_t head = thread; head < shape_.n_kv_heads; head += n_threads) {
      for (std::size_t first = 0; first < shape_.n_queries; first += kQueryBlock) {
        AttentionTask task{};
        task.layout = &layout_;
        task.cache = cache_.bytes().data() + layer * pages_.size() * layout_.page_bytes();
        task.kv_head = head;
        task.pages = pages_;
        task.cell_positions = positions_.data();
        task.queries = std::span(queries_).subspan(first, std::min(kQueryBlock, shape_.n_queries - first));
        task.q = q_.data() + first * row() + head * shape_.group * shape_.head_dim;
        task.q_stride = row();
        task.group = shape_.group;
        task.out = out.data() + first * row() + head * shape_.group * shape_.head_dim;
        task.out_stride = row();
        task.scale = 0.1f;
        task.causal = true;
        task.scratch = scratch.bytes();
        table.attention(task);
      }
    }
  }

  std::size_t row() const { return shape_.n_kv_heads * shape_.group * shape_.head_dim; }
  double flops() const {
    double visible = 0;
    for (const AttentionQuery& query : queries_) visible += query.place + 1;
    return visible * 4 * static_cast<double>(row());
  }
  double bytes() const { return static_cast<double>(pages_.size() * layout_.page_bytes()); }

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
  std::vector<float> out(shape.n_queries * shape.n_kv_heads * shape.group * shape.head_dim);
  AlignedBuffer scratch(attention_scratch_bytes(
      {shape.type, shape.type, shape.n_kv_heads, shape.head_dim, shape.head_dim}, kQueryBlock, shape.group));
  std::size_t layer = 0;
  for ([[maybe_unused]] auto _ : state) {
    shared->compute(kernels(), layer, thread, n_threads, out, scratch);
    layer = (layer + 1) % shape.n_layers;
  }
  const double work = (count_bytes ? shared->bytes() : shared->flops()) / static_cast<double>(n_threads);
  state.counters[count_bytes ? "bytes" : "flop"] =
      benchmark::Counter(work * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate,
                         benchmark::Counter::kIs1000);
  if (state.thread_index() == 0) {
    delete shared;
    shared = nullptr;
  }
}

/// Arguments: tokens before the 512 queries.
void prefill(benchmark::State& state) {
  const std::size_t depth = static_cast<std::size_t>(state.range(0));
  run(state, {.n_places = depth + 512, .n_queries = 512}, false);
}
BENCHMARK(prefill)->Arg(0)->Arg(2048)->Threads(1)->Threads(2)->UseRealTime()->Unit(benchmark::kMillisecond);

/// Arguments: depth, query heads for each key/value head, head dimension.
void decode(benchmark::State& state) {
  const Shape shape{.group = static_cast<std::size_t>(state.range(1)),
                    .head_dim = static_cast<std::size_t>(state.range(2)),
                    .n_places = static_cast<std::size_t>(state.range(0)),
                    .n_layers = 24};
  run(state, shape, true);
}
BENCHMARK(decode)
    ->Args({2048, 1, 128})
    ->Args({2048, 2, 128})
    ->Args({2048, 4, 128})
    ->Args({2048, 8, 128})
    ->Args({2048, 4, 64})
    ->Args({2048, 2, 256})
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

void store_cells(benchmark::State& state) {
  const KvLayout layout{ElementType::f16, ElementType::f16, 8, 128, 128};
  AlignedBuffer pages(32 * layout.page_bytes());
  std::vector<float> cell(8 * 128, 0.5f);
  for ([[maybe_unused]] auto _ : state) {
    for (std::size_t i = 0; i < 512; ++i) {
      store_cell(layout, pages.bytes().data() + i / 16 * layout.page_bytes(), i % 16, cell.data(),
                 cell.data());
    }
  }
  state.counters["cells"] =
      benchmark::Counter(512.0 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(store_cells)->Unit(benchmark::kMicrosecond);

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
