// A golden model with changed keys and tensors, for what no golden shows.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/writer.h"
#include "model/hparams.h"
#include "model/model.h"
#include "support/golden.h"

namespace quipu::test {

class EditedModel {
 public:
  explicit EditedModel(std::string_view golden) : golden_(load_golden(golden)) {}

  const std::vector<std::int32_t>& tokens() const { return golden_.tokens; }

  template <typename Number>
  EditedModel& set(std::string_view key, Number value) {
    golden_.metadata.set(golden_.architecture + "." + std::string(key), gguf::Value(std::move(value)));
    return *this;
  }
  /// The same keys and tensors as a model of another architecture.
  EditedModel& as(std::string_view architecture) {
    gguf::Metadata renamed(golden_.metadata.origin());
    for (const auto& [name, value] : golden_.metadata.entries()) {
      const bool own = name.starts_with(golden_.architecture + ".");
      renamed.set(own ? std::string(architecture) + name.substr(golden_.architecture.size()) : name, value);
    }
    renamed.set("general.architecture", std::string(architecture));
    golden_.metadata = std::move(renamed);
    golden_.architecture = architecture;
    return *this;
  }
  EditedModel& erase_key(std::string_view key) {
    gguf::Metadata kept(golden_.metadata.origin());
    for (const auto& [name, value] : golden_.metadata.entries()) {
      if (name != golden_.architecture + "." + std::string(key)) kept.set(name, value);
    }
    golden_.metadata = std::move(kept);
    return *this;
  }
  EditedModel& erase(std::string_view name) {
    std::erase_if(golden_.tensors, [&](const GoldenTensor& tensor) { return tensor.name == name; });
    return *this;
  }
  /// Adds or replaces; without values they follow from the name as in all goldens.
  EditedModel& tensor(const std::string& name, std::vector<std::uint64_t> innermost_first,
                      std::vector<float> values = {}) {
    erase(name);
    golden_.tensors.push_back({name, ElementType::f32, std::move(innermost_first)});
    if (!values.empty()) values_[name] = std::move(values);
    return *this;
  }
  std::vector<float> values(std::string_view name) const {
    const auto given = values_.find(std::string(name));
    if (given != values_.end()) return given->second;
    const auto found = std::find_if(golden_.tensors.begin(), golden_.tensors.end(),
                                    [&](const GoldenTensor& tensor) { return tensor.name == name; });
    return golden_weights(*found, golden_.seed);
  }

  /// Without loading: there may be other layers than the tensors are for.
  Hparams hparams() const { return read_hparams(golden_.metadata, golden_.cols); }
  std::shared_ptr<const LoadedModel> load(const ModelLoadOptions& options = {}) const {
    std::vector<std::vector<float>> numbers;
    std::vector<gguf::TensorToWrite> tensors;
    numbers.reserve(golden_.tensors.size());
    for (const GoldenTensor& tensor : golden_.tensors) {
      numbers.push_back(values(tensor.name));
      tensors.push_back(gguf::tensor_in_memory(tensor.name, ElementType::f32, tensor.dims,
                                               std::as_bytes(std::span(numbers.back()))));
    }
    return LoadedModel::load(gguf::write_memory(golden_.metadata, tensors), "edited", options);
  }

 private:
  Golden golden_;
  std::map<std::string, std::vector<float>> values_;
};

/// a's elements, then b's, then c's.
inline std::vector<float> joined(std::vector<float> a, const std::vector<float>& b,
                                 const std::vector<float>& c = {}) {
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}

}  // namespace quipu::test
