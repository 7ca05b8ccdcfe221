// What makes a set of shards one model. Messages begin with the shard at fault.
#include "gguf/split.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "gguf/display.h"
#include "gguf/layout.h"

namespace quipu::gguf {
namespace {

std::string shard_suffix(std::size_t index, std::size_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", index + 1, count);
}

/// The path without the suffix; nothing if it does not end in it.
std::optional<std::filesystem::path> prefix_of(const std::filesystem::path& path, std::size_t index,
                                               std::size_t count) {
  std::string name = path.string();
  const std::string suffix = shard_suffix(index, count);
  if (!name.ends_with(suffix)) return std::nullopt;
  name.resize(name.size() - suffix.size());
  return name;
}

/// Keys that two shards may give differently.
bool is_own_to_shard(std::string_view key) {
  return key == kSplitNo || key == kAlignmentKey;
}

}  // namespace

bool is_split_key(std::string_view key) {
  return key == kSplitNo || key == kSplitCount || key == kSplitTensors || key == kSplitFingerprint;
}

std::filesystem::path shard_path(const std::filesystem::path& prefix, std::size_t index, std::size_t count) {
  return prefix.string() + shard_suffix(index, count);
}

std::optional<SplitPlace> split_place(const Metadata& metadata) {
  const auto count = metadata.get_u32(kSplitCount);
  if (!count || *count == 0) return std::nullopt;
  const auto no = metadata.get_u32(kSplitNo);
  if (!no) {
    fail(ErrorCode::bad_file, "{}: key '{}': missing, where '{}' is {}", metadata.origin(), kSplitNo,
         kSplitCount, *count);
  }
  if (*count > kMaxShards || *no >= *count) {
    fail(ErrorCode::bad_file, "{}: key '{}': {} is impossible where '{}' is {}", metadata.origin(), kSplitNo,
         *no, kSplitCount, *count);
  }
  return SplitPlace{*no, *count};
}

std::filesystem::path first_shard_prefix(const std::filesystem::path& path, const SplitPlace& place,
                                         const Metadata& metadata) {
  if (place.no != 0) {
    const auto prefix = prefix_of(path, place.no, place.count);
    const std::string first = prefix ? shard_path(prefix->filename(), 0, place.count).string()
                                     : "the one named ..." + shard_suffix(0, place.count);
    fail(ErrorCode::bad_file, "{}: shard {} of {} of a split model; open its first shard, {}",
         metadata.origin(), place.no + 1, place.count, first);
  }
  if (const auto prefix = prefix_of(path, 0, place.count)) return *prefix;
  fail(ErrorCode::bad_file,
       "{}: the first of {} shards, but not named ...{}, so that the others cannot be found",
       metadata.origin(), place.count, shard_suffix(0, place.count));
}

void check_shard(const Metadata& shard, std::size_t index, const SplitPlace& set, const Metadata& first) {
  const auto count = shard.get_u32(kSplitCount);
  const auto no = shard.get_u32(kSplitNo);
  if (!count || !no) {
    fail(ErrorCode::bad_file, "{}: key '{}': missing from shard {} of {}", shard.origin(),
         count ? kSplitNo : kSplitCount, index + 1, set.count);
  }
  if (*count != set.count) {
    fail(ErrorCode::bad_file, "{}: key '{}': {}, where the first shard says {}", shard.origin(), kSplitCount,
         *count, set.count);
  }
  if (*no != index) {
    fail(ErrorCode::bad_file, "{}: key '{}': {}, where shard {} of {} must have {}", shard.origin(), kSplitNo,
         *no, index + 1, set.count, index);
  }
  for (const auto& [key, value] : shard.entries()) {
    const Value* firsts = is_own_to_shard(key) ? nullptr : first.find(key);
    if (firsts != nullptr && *firsts != value) {
      fail(ErrorCode::bad_file, "{}: key '{}': {}, where the first shard says {}: is it of another model?",
           shard.origin(), printable(key), to_display(value), to_display(*firsts));
    }
  }
  if (first.contains(kSplitFingerprint) != shard.contains(kSplitFingerprint)) {
    fail(ErrorCode::bad_file, "{}: key '{}': not in every shard: is shard {} of another model?",
         shard.origin(), kSplitFingerprint, index + 1);
  }
}

void check_tensor_count(const Metadata& first, std::size_t n_shards, std::size_t n_tensors) {
  const auto expected = first.get_i64(kSplitTensors);
  if (!expected || std::cmp_equal(*expected, n_tensors)) return;
  fail(ErrorCode::bad_file, "{}: key '{}': {}, but the {} shards hold {} tensors", first.origin(),
       kSplitTensors, *expected, n_shards, n_tensors);
}

}  // namespace quipu::gguf
