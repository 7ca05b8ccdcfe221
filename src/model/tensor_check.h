// A file's tensors against the list of weights that its architecture and hyper-parameters ask for. Loading
// ends with the first problem; inspection shows all of them.
#pragma once

#include <string_view>
#include <vector>

#include "gguf/reader.h"
#include "model/hparams.h"
#include "model/weights.h"
#include "quipu/error.h"

namespace quipu {

/// A weight of the list and the tensor that holds it.
struct FoundWeight {
  const WeightSpec* spec;
  const gguf::TensorInfo* tensor;
  Shape shape;  ///< the one that it has, of those that it may have
};

struct TensorReport {
  std::vector<FoundWeight> weights{};  ///< what is to be loaded, in the list's order
  /// In the list's order: Error(bad_file) for a tensor that is missing or has another shape than expected,
  /// Error(unsupported) for one of a type or a feature that Quipu does not have. One line each, which names
  /// the file and the tensor, what is expected and what is found.
  std::vector<Error> problems{};
  std::vector<std::string_view> unknown{};  ///< names that are not in the list
};

/// `specs` and `reader` must outlive the report.
TensorReport check_tensors(const gguf::Reader& reader, const Hparams& hparams,
                           const std::vector<WeightSpec>& specs);

/// Everything that keeps a file from running, as far as can be told without loading it: a fault in the
/// metadata hides those of the tensors, which follow from it. `unknown` holds what is left.
struct ModelReport {
  std::vector<Error> problems{};
  std::vector<std::string> unknown{};  ///< tensors that would not be used
};
ModelReport check_model(const gguf::Reader& reader);

}  // namespace quipu
