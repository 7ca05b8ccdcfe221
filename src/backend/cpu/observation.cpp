#include "backend/cpu/observation.h"

namespace quipu::cpu {
namespace {

/// Without its data.
ObservedTensor tensor_of(const ObservedBuffer& buffer, const Run& run) {
  ObservedTensor tensor{
      .name = buffer.name, .type = buffer.type, .rank = buffer.shape.rank(), .weight = buffer.weight};
  tensor.dims.fill(1);
  tensor.dims[0] = run.count(buffer.shape.rows());
  for (std::size_t i = 1; i < tensor.rank; ++i) tensor.dims[i] = buffer.shape.dim(i);
  return tensor;
}

}  // namespace

bool show(const Observation& observation, const Run& run, RunObserver& observer) {
  std::vector<ObservedTensor> inputs;
  inputs.reserve(observation.inputs.size());
  for (const ObservedBuffer& input : observation.inputs) inputs.push_back(tensor_of(input, run));
  ObservedNode node{
      .operation = observation.operation, .output = tensor_of(observation.output, run), .inputs = inputs};
  if (!observer.wants(node)) return true;
  node.output.data = run.data<const std::byte>(observation.output.buffer);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].weight == nullptr) inputs[i].data = run.data<const std::byte>(observation.inputs[i].buffer);
  }
  return observer.observe(node);
}

}  // namespace quipu::cpu
