#include "api/observer.h"

#include <utility>
#include <vector>

namespace quipu {
namespace {

TensorView to_public(const ObservedTensor& tensor) {
  TensorView view{.name = tensor.name,
                  .type = info(tensor.type).name,
                  .dims = tensor.dims,
                  .rank = tensor.rank,
                  .is_weight = tensor.weight != nullptr,
                  .floats = {},
                  .integers = {}};
  if (tensor.data == nullptr) return view;
  const std::size_t n = tensor.dims[0] * tensor.dims[1] * tensor.dims[2] * tensor.dims[3];
  if (tensor.type == ElementType::f32) view.floats = {static_cast<const float*>(tensor.data), n};
  if (tensor.type == ElementType::i32) view.integers = {static_cast<const std::int32_t*>(tensor.data), n};
  return view;
}

class WrappedObserver final : public RunObserver {
 public:
  explicit WrappedObserver(std::shared_ptr<Observer> observer) : observer_(std::move(observer)) {}
  bool wants(const ObservedNode& node) override { return observer_->wants(view(node)); }
  bool observe(const ObservedNode& node) override { return observer_->observe(view(node)); }

 private:
  NodeView view(const ObservedNode& node) {
    inputs_.clear();
    for (const ObservedTensor& input : node.inputs) inputs_.push_back(to_public(input));
    return {.operation = node.operation, .output = to_public(node.output), .inputs = inputs_};
  }

  std::shared_ptr<Observer> observer_;
  std::vector<TensorView> inputs_;
};

}  // namespace

std::unique_ptr<RunObserver> wrap_observer(std::shared_ptr<Observer> observer) {
  return std::make_unique<WrappedObserver>(std::move(observer));
}

}  // namespace quipu
