#include "backend/cpu/observation.h"

namespace quipu::cpu {
namespace {

ObservedTensor tensor_of(const ObservedBuffer& buffer, const Run& run) {
  ObservedTensor tensor{
      .name = buffer.name, .type = buffer.type, .rank = buffer.shape.rank(), .weight = buffer.weight};
  tensor.dims.fill(1);
  tensor.dims[0] = run.count(buffer.shape.rows());
  for (std::size_t i = 1; i < tensor.rank; ++i) tensor.dims[i] = buffer.shape.dim(i);
  if (buffer.weight == nullptr) tensor.data = run.data<const std::byte>(buffer.buffer);
  return tensor;
}

}  // namespace

bool show(const Observation& observation, const Run& run, RunObserver& observer) {
  std::vector<ObservedTensor> inputs;
  inputs.reserve(observation.inputs.size());
  for (const ObservedBuffer& input : observation.inputs) inputs.push_back(tensor_of(input, run));
  return observer.observe(
      {.operation = observation.operation, .output = tensor_of(observation.output, run), .inputs = inputs});
}

}  // namespace quipu::cpu
