#include "backend/cpu/compiler.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "backend/arena_planner.h"
#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/steps/steps.h"
#include "base/checked.h"
#include "base/error.h"

namespace quipu::cpu {
namespace {

bool contains(const std::vector<BufferId>& buffers, BufferId wanted) {
  return std::find(buffers.begin(), buffers.end(), wanted) != buffers.end();
}

bool share_any(const std::vector<BufferId>& a, const std::vector<BufferId>& b) {
  return std::any_of(a.begin(), a.end(), [&](BufferId id) { return contains(b, id); });
}

/// Whether `later` needs something of `earlier`, or writes what it uses.
bool depends_on(const Step& later, const Step& earlier) {
  return share_any(earlier.writes, later.reads) || share_any(earlier.writes, later.writes) ||
         share_any(earlier.reads, later.writes);
}

template <typename Function>
void for_each_buffer(const Phase& phase, Function function) {
  for (const Chain& chain : phase) {
    for (const Step& step : chain.steps) {
      for (const BufferId id : step.reads) function(id);
      for (const BufferId id : step.writes) function(id);
    }
  }
}

std::size_t buffer_bytes(std::size_t rows, std::size_t row_bytes) {
  const auto bytes = checked_mul(rows, row_bytes);
  if (!bytes)
    fail(ErrorCode::out_of_memory, "{} rows of {} bytes do not fit the address space", rows, row_bytes);
  return *bytes;
}

void find_query_blocks(const AttentionLayout& layout, std::vector<QueryBlock>& blocks) {
  blocks.clear();
  for (std::size_t i = 0; i < layout.tokens.size(); ++i) {
    const bool joins = !blocks.empty() && blocks.back().n_tokens < kQueryBlock &&
                       layout.tokens[i].sequence == layout.tokens[i - 1].sequence;
    if (joins) {
      ++blocks.back().n_tokens;
    } else {
      blocks.push_back({i, 1});
    }
  }
}

}  // namespace

std::function<std::size_t(const Run&)> units_of(Dim dim) {
  return [dim](const Run& run) { return run.count(dim); };
}

const PackedMatrix* matrix_of(Value weight) {
  if (!weight.valid()) return nullptr;
  const auto* storage = dynamic_cast<const MatrixStorage*>(weight.graph().info(weight).weight->storage);
  QUIPU_CHECK(storage != nullptr);
  return &storage->matrix();
}

const float* vector_of(Value weight) {
  if (!weight.valid()) return nullptr;
  const auto* storage = dynamic_cast<const VectorStorage*>(weight.graph().info(weight).weight->storage);
  QUIPU_CHECK(storage != nullptr);
  return storage->data();
}

Compiler::Compiler(const Graph& graph, const Extents& max_extents, Backing backing)
    : graph_(graph), max_extents_(max_extents), backing_(backing), kernels_(cpu::kernels()) {}

std::unique_ptr<Plan> Compiler::compile(unsigned max_threads) {
  place_outputs();
  for (const Node& node : graph_.nodes()) make_steps(node, *this);
  return finish(max_threads);
}

std::unique_ptr<Plan> Compiler::compile_observed(unsigned max_threads) {
  place_outputs();
  for (const Node& node : graph_.nodes()) {
    make_steps(node, *this);
    emit_observation(node);
  }
  return finish(max_threads);
}

void Compiler::place_outputs() {
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    values_[graph_.outputs()[i].id()] = add_buffer({BufferPlace::Kind::output, i});
  }
}

ObservedBuffer Compiler::observed(Value value) {
  const Weight* weight = graph_.info(value).weight;
  if (weight != nullptr) return {value.name(), value.type(), value.shape(), 0, weight->storage};
  return {value.name(), value.type(), value.shape(), buffer(value), nullptr};
}

/// A step without work, which keeps what the node read and wrote until the phase that it stands in is over.
void Compiler::emit_observation(const Node& node) {
  Observation observation{phases_.size(), node.operation->name, observed(node.output), {}};
  Step step{.name = node.output.name() + " observed", .reads = {observation.output.buffer}};
  for (const Value& input : node.inputs) {
    if (!input.valid()) continue;
    observation.inputs.push_back(observed(input));
    if (observation.inputs.back().weight == nullptr) step.reads.push_back(observation.inputs.back().buffer);
  }
  step.n_units = [](const Run&) { return std::size_t{0}; };
  phases_.emplace_back();
  phases_.back().emplace_back();
  phases_.back().back().steps.push_back(std::move(step));
  observations_.push_back(std::move(observation));
}

std::unique_ptr<Plan> Compiler::finish(unsigned max_threads) {
  CpuPlan::Parts parts;
  parts.max_extents = max_extents_;
  place_buffers(parts);
  for (const Phase& phase : phases_) {
    for (const Chain& chain : phase) {
      for (const Step& step : chain.steps)
        parts.scratch_bytes = std::max(parts.scratch_bytes, step.scratch_bytes);
    }
  }
  parts.phases = std::move(phases_);
  parts.prologue = std::move(prologue_);
  parts.observations = std::move(observations_);
  return std::make_unique<CpuPlan>(std::move(parts), max_threads, backing_);
}

BufferId Compiler::add_buffer(Buffer buffer) {
  buffers_.push_back(buffer);
  return buffers_.size() - 1;
}

BufferId Compiler::buffer(Value value) {
  const auto known = values_.find(value.id());
  if (known != values_.end()) return known->second;
  const ValueInfo& value_info = graph_.info(value);
  QUIPU_CHECK(value_info.source != ValueSource::weight);
  const BufferId id = value_info.source == ValueSource::input
                          ? add_buffer({BufferPlace::Kind::input, value_info.ordinal})
                          : create_buffer(value.shape().rows(), value.shape().row_elements() * sizeof(float));
  values_[value.id()] = id;
  return id;
}

BufferId Compiler::create_buffer(Dim rows, std::size_t row_bytes) {
  return create_buffer(rows, 1, row_bytes);
}

BufferId Compiler::create_buffer(Dim rows, std::size_t factor, std::size_t row_bytes) {
  const std::size_t n_rows = buffer_bytes(rows.resolve(max_extents_), factor);
  return add_buffer({BufferPlace::Kind::arena, 0, buffer_bytes(n_rows, row_bytes)});
}

BufferId Compiler::token(const void* object) {
  const auto [place, is_new] = tokens_.try_emplace(object, buffers_.size());
  if (is_new) add_buffer({BufferPlace::Kind::token});
  return place->second;
}

void Compiler::alias(Value value, Value source) {
  const auto output = values_.find(value.id());
  QUIPU_CHECK(output == values_.end());  // a view cannot be a result of the graph
  values_[value.id()] = buffer(source);
}

ActivationRows Compiler::activation(Value value, ActivationFormat format) {
  const BufferId source = buffer(value);
  const std::size_t n_cols = value.shape().row_elements();
  if (format == ActivationFormat::f32) return {source, n_cols * sizeof(float)};
  const std::size_t row_bytes = activation_row_bytes(format, n_cols);
  const auto [place, is_new] = activations_.try_emplace({source, format}, buffers_.size());
  if (!is_new) return {place->second, row_bytes};

  const QuantizeKernel quantize = kernels_.quantize(format);
  const BufferId target = create_buffer(value.shape().rows(), row_bytes);
  place->second = target;
  emit({.name = "quantize " + value.name(),
        .rows = value.shape().rows(),
        .reads = {source},
        .writes = {target},
        .n_units = units_of(value.shape().rows()),
        .body = [=](const Run& run, UnitRange range, std::span<std::byte>) {
          for (std::size_t row = range.begin; row < range.end; ++row) {
            quantize(run.data<float>(source) + row * n_cols, n_cols,
                     run.data<std::byte>(target) + row * row_bytes);
          }
        }});
  return {target, row_bytes};
}

std::shared_ptr<const std::vector<QueryBlock>> Compiler::query_blocks(std::size_t layout) {
  auto& blocks = query_blocks_[layout];
  if (blocks == nullptr) {
    blocks = std::make_shared<std::vector<QueryBlock>>();
    blocks->reserve(max_extents_.n_tokens);
    prologue_.push_back(
        [layout, blocks](const Run& run) { find_query_blocks(*run.arguments.layouts[layout], *blocks); });
  }
  return blocks;
}

/// The chains of the last phase that a step needs something of, if it needs that row by row only and so can
/// join them; nothing if the step must wait for the phase to end.
std::optional<std::vector<std::size_t>> Compiler::joinable_chains(const Step& step) const {
  if (phases_.empty()) return std::nullopt;
  std::vector<std::size_t> joined;
  const Phase& phase = phases_.back();
  for (std::size_t c = 0; c < phase.size(); ++c) {
    bool depends = false;
    for (const Step& earlier : phase[c].steps) depends = depends || depends_on(step, earlier);
    if (!depends) continue;
    const std::optional<Dim>& rows = phase[c].steps.front().rows;
    if (!rows || !step.rows || *rows != *step.rows) return std::nullopt;
    joined.push_back(c);
  }
  return joined;
}

void Compiler::emit(Step step) {
  const std::optional<std::vector<std::size_t>> joined = joinable_chains(step);
  if (!joined) phases_.emplace_back();
  Phase& phase = phases_.back();
  if (!joined || joined->empty()) {
    phase.emplace_back();
    phase.back().steps.push_back(std::move(step));
    return;
  }
  // Chains that meet in one step become one, in the order in which they were made.
  Chain& target = phase[joined->front()];
  for (std::size_t i = 1; i < joined->size(); ++i) {
    std::vector<Step>& steps = phase[(*joined)[i]].steps;
    std::move(steps.begin(), steps.end(), std::back_inserter(target.steps));
    steps.clear();
  }
  target.steps.push_back(std::move(step));
  std::erase_if(phase, [](const Chain& chain) { return chain.steps.empty(); });
}

void Compiler::place_buffers(CpuPlan::Parts& parts) const {
  constexpr std::size_t kNever = static_cast<std::size_t>(-1);
  std::vector<ArenaRequest> lives(buffers_.size());
  for (std::size_t i = 0; i < buffers_.size(); ++i) lives[i] = {buffers_[i].bytes, kNever, 0};
  for (std::size_t phase = 0; phase < phases_.size(); ++phase) {
    for_each_buffer(phases_[phase], [&](BufferId id) {
      lives[id].first_phase = std::min(lives[id].first_phase, phase);
      lives[id].last_phase = std::max(lives[id].last_phase, phase);
    });
  }
  std::vector<ArenaRequest> requests;
  std::vector<std::size_t> request_of(buffers_.size(), kNever);
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].kind != BufferPlace::Kind::arena || lives[i].first_phase == kNever) continue;
    request_of[i] = requests.size();
    requests.push_back(lives[i]);
  }
  const ArenaLayout layout = plan_arena(requests);
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const std::size_t index = request_of[i] == kNever ? buffers_[i].index : layout.offsets[request_of[i]];
    parts.buffers.push_back({buffers_[i].kind, index});
  }
  parts.arena_bytes = layout.bytes;
}

}  // namespace quipu::cpu
