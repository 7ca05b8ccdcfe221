#include "model/tensor_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "quant/quant.h"
#include "vocab/vocab.h"

namespace quipu {
namespace {

std::string dims_to_string(const std::vector<std::uint64_t>& innermost_first) {
  return fmt::format("[{}]", fmt::join(innermost_first.rbegin(), innermost_first.rend(), ", "));
}

bool has_shape(const gguf::TensorInfo& tensor, const Shape& shape) {
  std::vector<std::uint64_t> dims = tensor.dims;
  while (dims.size() > shape.rank() && dims.back() == 1) dims.pop_back();
  dims.resize(std::max(dims.size(), shape.rank()), 1);
  if (dims.size() != shape.rank()) return false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[dims.size() - 1 - i] != shape.dim(i)) return false;
  }
  return true;
}

bool has_type(const gguf::TensorInfo& tensor, WeightRole role) {
  if (role == WeightRole::matrix) return info(tensor.type).decodable;
  return tensor.type == ElementType::f32 || tensor.type == ElementType::f16 ||
         tensor.type == ElementType::bf16;
}

class TensorChecker {
 public:
  explicit TensorChecker(const gguf::Reader& reader) : reader_(reader) {}

  void check(const WeightSpec& spec) {
    const gguf::TensorInfo* tensor = reader_.find_tensor(spec.name);
    if (tensor == nullptr && !spec.other_name.empty()) tensor = reader_.find_tensor(spec.other_name);
    if (tensor == nullptr) {
      if (is_needed(spec))
        add_problem(ErrorCode::bad_file, spec.name, fmt::format("{} is missing", to_string(spec.shape)));
      return;
    }
    known_.insert(tensor->name);
    if (spec.use == WeightUse::unsupported)
      add_problem(ErrorCode::unsupported, tensor->name, "belongs to a feature that is not supported");
    if (spec.slot != nullptr) check_found(spec, *tensor);
  }

  TensorReport finish(const Hparams& hparams) {
    for (const gguf::TensorInfo& tensor : reader_.tensors()) {
      if (!known_.contains(tensor.name) && !is_of_unused_part(hparams, tensor.name))
        report_.unknown.push_back(tensor.name);
    }
    return std::move(report_);
  }

 private:
  bool is_needed(const WeightSpec& absent) const {
    const bool is_needed = !absent.needed_with.empty() && reader_.find_tensor(absent.needed_with) != nullptr;
    if (absent.use != WeightUse::required && !is_needed) return false;
    return absent.replaced_by.empty() || reader_.find_tensor(absent.replaced_by) == nullptr;
  }

  void check_found(const WeightSpec& spec, const gguf::TensorInfo& tensor) {
    const bool has_other = spec.other_shape && has_shape(tensor, *spec.other_shape);
    const bool fits = has_other || has_shape(tensor, spec.shape);
    if (!fits) {
      const std::string other = spec.other_shape ? " or " + to_string(*spec.other_shape) : "";
      add_problem(
          ErrorCode::bad_file, tensor.name,
          fmt::format("must be {}{}, found {}", to_string(spec.shape), other, dims_to_string(tensor.dims)));
    }
    const bool has_good_type = has_type(tensor, spec.role);
    if (!has_good_type) {
      const std::string_view expected =
          spec.role == WeightRole::matrix ? "a type of matrices" : "F32, F16 or BF16";
      add_problem(ErrorCode::unsupported, tensor.name,
                  fmt::format("must be {}, found {}", expected, info(tensor.type).name));
    }
    if (fits && has_good_type)
      report_.weights.push_back({&spec, &tensor, has_other ? *spec.other_shape : spec.shape});
  }

  void add_problem(ErrorCode code, std::string_view tensor, std::string_view problem) {
    report_.problems.emplace_back(code, fmt::format("{}: tensor '{}' {}", reader_.origin(), tensor, problem));
  }

  const gguf::Reader& reader_;
  TensorReport report_;
  std::unordered_set<std::string_view> known_;
};

}  // namespace

TensorReport check_tensors(const gguf::Reader& reader, const Hparams& hparams,
                           const std::vector<WeightSpec>& specs) {
  TensorChecker checker(reader);
  for (const WeightSpec& spec : specs) checker.check(spec);
  return checker.finish(hparams);
}

ModelReport check_model(const gguf::Reader& reader) {
  ModelReport result;
  try {
    const Vocab vocab = Vocab::load(reader.metadata());
    const Hparams hparams = read_hparams(reader.metadata(), vocab.size());
    ModelWeights weights;
    const std::vector<WeightSpec> specs = list_weights(hparams, weights);
    TensorReport report = check_tensors(reader, hparams, specs);
    result.problems = std::move(report.problems);
    result.unknown.assign(report.unknown.begin(), report.unknown.end());
  } catch (const Error& error) {
    result.problems.push_back(error);
  }
  return result;
}

}  // namespace quipu
