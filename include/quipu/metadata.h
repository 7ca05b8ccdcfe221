// What a model file says about itself: keys with typed values, and the table of its tensors.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "quipu/types.h"

namespace quipu {

namespace gguf {
class Metadata;
}

/// Integers are widened by sign; everything else is as in the file.
using MetadataArray =
    CopySafeVariant<std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<float>,
                    std::vector<double>, std::vector<bool>, std::vector<std::string>>;
using MetadataValue =
    std::variant<std::uint64_t, std::int64_t, float, double, bool, std::string, MetadataArray>;

/// The keys of one file in the file's order. A shared handle: cheap to copy, valid without the object it came
/// from.
class Metadata {
 public:
  std::size_t size() const noexcept;
  /// Of the i-th key, i < size(); else Error(invalid_argument). So in the three that follow.
  std::string_view key(std::size_t i) const;
  /// As GGUF tools write it: "u32", "string", "f32[]".
  std::string type(std::size_t i) const;
  MetadataValue value(std::size_t i) const;
  /// One printable line: strings quoted and cut after `max_chars`, arrays by length and first elements.
  std::string display(std::size_t i, std::size_t max_chars = 60) const;

  std::optional<std::size_t> find(std::string_view key) const;
  /// The value of a string; nothing if the key is absent, Error(bad_file) if it is of another type.
  std::optional<std::string> string(std::string_view key) const;
  /// The value of an integer or floating-point number, by the same rules.
  std::optional<double> number(std::string_view key) const;

 private:
  friend struct ApiAccess;
  explicit Metadata(std::shared_ptr<const gguf::Metadata> entries) : entries_(std::move(entries)) {}
  std::shared_ptr<const gguf::Metadata> entries_;
};

/// One tensor as the file's table describes it.
struct TensorDescription {
  std::string name;
  std::string type;                  ///< "F32", "Q4_K"
  std::vector<std::uint64_t> shape;  ///< 1 to 4 dimensions, innermost first, as in the file
  std::uint64_t n_elements = 0;
  std::uint64_t bytes = 0;
  std::uint32_t shard = 0;   ///< which file of a split set
  std::uint64_t offset = 0;  ///< of the data, from the start of that file
};

}  // namespace quipu
