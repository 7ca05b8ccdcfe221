// Split sets: how shards are named, what their `split.` keys mean, and whether a shard belongs to its set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "gguf/header.h"
#include "gguf/metadata.h"

namespace quipu::gguf {

inline constexpr std::string_view kSplitNo = "split.no";                  // u16, from 0
inline constexpr std::string_view kSplitCount = "split.count";            // u16
inline constexpr std::string_view kSplitTensors = "split.tensors.count";  // i32, of all shards
/// Quipu's own, u64: the same in every shard of a set, and different for other metadata or other tensors. The
/// other keys cannot tell a shard of another model with as many tensors.
inline constexpr std::string_view kSplitFingerprint = "split.fingerprint";
inline constexpr std::size_t kMaxShards = 65535;

/// Whether a key is one of those above, which belong to a file and not to its model.
bool is_split_key(std::string_view key);

/// `PREFIX-00001-of-00003.gguf` for `index` 0 of 3.
std::filesystem::path shard_path(const std::filesystem::path& prefix, std::size_t index, std::size_t count);

struct SplitPlace {
  std::uint32_t no;     ///< from 0
  std::uint32_t count;  ///< at least 1
};

/// Nothing if the file is not part of a set (no count, or the 0 that merging tools leave behind). Throws
/// Error(bad_file) if the keys contradict each other.
std::optional<SplitPlace> split_place(const Metadata& metadata);

/// The prefix of a first shard's path. Throws Error(bad_file) if its name or its `split.no` is not the
/// first's, naming the shard that should be opened where that is known.
std::filesystem::path first_shard_prefix(const std::filesystem::path& path, const SplitPlace& place,
                                         const Metadata& metadata);

/// Throws Error(bad_file), naming the shard and the reason, unless `shard` is number `index` of the set of
/// `first`.
void check_shard(const Metadata& shard, std::size_t index, const SplitPlace& set, const Metadata& first);

/// Throws Error(bad_file) unless the set has as many tensors as the first shard says it has.
void check_tensor_count(const Metadata& first, std::size_t n_shards, std::size_t n_tensors);

}  // namespace quipu::gguf
