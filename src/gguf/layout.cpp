// Sizes of tensors and where they may lie.
#include "gguf/layout.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"
#include "gguf/display.h"

namespace quipu::gguf {

std::uint32_t alignment_of(const Metadata& metadata, ErrorCode code) {
  const Value* value = metadata.find(kAlignmentKey);
  if (value == nullptr) return kDefaultAlignment;
  const auto* alignment = std::get_if<std::uint32_t>(value);
  if (alignment == nullptr) {
    fail(code, "{}: key '{}': expected u32, found {}", metadata.origin(), kAlignmentKey,
         name(type_of(*value)));
  }
  if (!std::has_single_bit(*alignment) || *alignment < kLeastAlignment) {
    fail(code, "{}: key '{}': {} is not a power of two of at least {}", metadata.origin(), kAlignmentKey,
         *alignment, kLeastAlignment);
  }
  return *alignment;
}

TensorSize tensor_size(ElementType type, std::span<const std::uint64_t> dims, ErrorCode code,
                       std::string_view origin, std::string_view name) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto fault = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fail(code, "{}: tensor '{}': {}", origin, printable(name),
         fmt::format(format, std::forward<Args>(args)...));
  };
  if (dims.empty() || dims.size() > kMaxDims) {
    fault("{} dimensions, where 1 to {} are possible", dims.size(), kMaxDims);
  }
  std::uint64_t n_elements = 1;
  for (const std::uint64_t dim : dims) {
    if (dim == 0) fault("dimension of size 0 in [{}]", fmt::join(dims, ", "));
    const auto product = checked_mul(n_elements, dim);
    if (!product || *product > kMost) fault("dimensions [{}] are too large", fmt::join(dims, ", "));
    n_elements = *product;
  }
  const ElementTypeInfo& of_type = info(type);
  if (dims[0] % of_type.block_elements != 0) {
    fault("innermost dimension {} is not a multiple of the block size {} of {}", dims[0],
          of_type.block_elements, of_type.name);
  }
  const auto bytes = checked_mul<std::uint64_t>(n_elements / of_type.block_elements, of_type.block_bytes);
  if (!bytes || *bytes > kMost) fault("dimensions [{}] are too large", fmt::join(dims, ", "));
  return {n_elements, *bytes};
}

void check_ranges(std::span<const TensorInfo> tensors, std::uint32_t alignment, std::uint64_t file_bytes,
                  std::string_view origin) {
  for (const TensorInfo& tensor : tensors) {
    const auto end = checked_add(tensor.offset, tensor.bytes);
    if (!end || *end > file_bytes) {
      fail(ErrorCode::bad_file,
           "{}: tensor '{}': its {} bytes of data at byte {} are out of file bounds ({} bytes: is it cut "
           "short?)",
           origin, printable(tensor.name), tensor.bytes, tensor.offset, file_bytes);
    }
  }

  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return tensors[a].offset < tensors[b].offset; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const TensorInfo& before = tensors[order[i - 1]];
    const TensorInfo& after = tensors[order[i]];
    if (before.offset + before.bytes > after.offset) {
      fail(ErrorCode::bad_file, "{}: tensor '{}': its data overlaps that of '{}'", origin,
           printable(after.name), printable(before.name));
    }
  }

  if (order.empty()) return;
  const TensorInfo& last = tensors[order.back()];
  const std::uint64_t end = last.offset + last.bytes;  // no padding at all is the habit of some writers
  const auto padded_end = checked_round_up<std::uint64_t>(end, alignment);
  if (file_bytes != end && (!padded_end || file_bytes < *padded_end)) {
    fail(ErrorCode::bad_file,
         "{}: tensor '{}': the padding behind its data is out of file bounds ({} bytes: is it cut short?)",
         origin, printable(last.name), file_bytes);
  }
}

}  // namespace quipu::gguf
