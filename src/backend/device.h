// Devices and plans: what the layers above see of a backend. Nothing here can be dereferenced by them;
// weights and caches are opaque, and a plan runs from host inputs to host outputs.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/aligned_buffer.h"
#include "graph/graph.h"
#include "graph/ops/attention.h"
#include "graph/storage.h"

namespace quipu {

class WorkerPool;

/// A tensor of a run as an observer sees it.
struct ObservedTensor {
  std::string_view name;
  ElementType type = ElementType::f32;
  std::array<std::size_t, 4> dims{};  ///< outermost first; those past the rank are 1
  std::size_t rank = 0;
  /// The numbers (f32 or i32), row-major; null for a weight, whose rows its storage gives.
  const void* data = nullptr;
  const WeightStorage* weight = nullptr;
};

/// A node that has just been computed. Everything is valid during the call only.
struct ObservedNode {
  std::string_view operation;
  ObservedTensor output;
  std::span<const ObservedTensor> inputs;  ///< those that are present, in the operation's order
};

/// Looks on while an observed plan runs. Called by the thread that called run, between nodes.
class RunObserver {
 public:
  virtual ~RunObserver() = default;

  /// Whether observe is to be called for a node; its tensors have no data yet.
  virtual bool wants(const ObservedNode&) { return true; }
  /// Returning false ends the run early, as the abort callback does.
  virtual bool observe(const ObservedNode& node) = 0;
};

/// What one run of a plan reads and writes. Pointers are in the order in which the graph declared its inputs
/// and outputs, and stay valid until the run returns.
struct RunArguments {
  Extents extents;                                  ///< at most the plan's reserved maximum
  std::span<const void* const> inputs;              ///< i32 or f32, by the graph's input ordinals
  std::span<float* const> outputs;                  ///< by the graph's outputs
  std::span<const AttentionLayout* const> layouts;  ///< by AttentionParams::layout
  unsigned n_threads = 1;
  /// Whose threads compute, at most n_threads of them. Null: the plan's own, made when they are first needed.
  WorkerPool* pool = nullptr;
  /// Asked now and then by the thread that called run; once it returns true, the run ends early, and what it
  /// wrote means nothing. Null: nobody is asked.
  const std::function<bool()>* abort = nullptr;
  /// Sees every node, if the plan was compiled to be observed. Null: nobody looks.
  RunObserver* observer = nullptr;
};

/// A compiled graph. Token counts, positions, sequence layout and thread count are inputs: one plan serves
/// every micro-batch up to its maximum. One run at a time.
class Plan {
 public:
  virtual ~Plan() = default;

  /// Computes; does not allocate, unless it needs threads of its own for the first time.
  virtual void run(const RunArguments& arguments) = 0;
  /// Memory for intermediate results and scratch.
  virtual std::size_t bytes() const = 0;
  /// How often the threads met in the last run, at its end included; 0 if there was only one.
  virtual std::size_t n_meetings() const = 0;
};

/// A place to keep tensors and compute plans. Safe to use from several threads.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string_view name() const = 0;
  /// Error(out_of_memory); Error(unsupported) names a type that the role cannot have.
  virtual std::unique_ptr<WeightStorage> create_weight(ElementType type, WeightRole role,
                                                       const Shape& shape) = 0;
  /// F32, F16, BF16, Q8_0, Q5_1, Q5_0, Q4_1, Q4_0 and IQ4_NL, keys and values chosen apart.
  /// Error(out_of_memory); Error(unsupported) names another type, or a dim that is not whole blocks.
  virtual std::unique_ptr<KvStorage> create_kv(const KvShape& shape, std::size_t n_pages) = 0;
  /// Compiles for up to `max_extents` and `max_threads`. The graph may go afterwards; its weights and caches
  /// must stay.
  virtual std::unique_ptr<Plan> compile(const Graph& graph, const Extents& max_extents,
                                        unsigned max_threads) = 0;
  /// The same, node by node, so that a RunObserver sees each; slower, with the same bits.
  virtual std::unique_ptr<Plan> compile_observed(const Graph& graph, const Extents& max_extents,
                                                 unsigned max_threads) = 0;
};

/// The host's processor. With Backing::none what it makes tells how large it would be, and holds nothing:
/// plans cannot run, matrices read as zeros, and caches can be neither read nor written.
std::unique_ptr<Device> create_cpu_device(Backing backing = Backing::memory);

}  // namespace quipu
