// Writing GGUF version 3 files. The file appears under its name only when it is complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gguf/metadata.h"
#include "quant/element_type.h"

namespace quipu::gguf {

struct TensorToWrite {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::uint64_t> dims;  ///< innermost first
  /// Puts the tensor's bytes, in pieces and in order, into the given function; called once.
  std::function<void(const std::function<void(std::span<const std::byte>)>&)> produce;
};

/// Convenience for data that is in memory and stays there until the file is written.
TensorToWrite tensor_in_memory(std::string name, ElementType type, std::vector<std::uint64_t> dims,
                               std::span<const std::byte> bytes);

/// `general.alignment` in the metadata sets the alignment (a power of two, at least 8), else 32.
/// Throws Error(invalid_argument) for what the format cannot hold (names repeated or over 64 bytes,
/// dimensions, byte counts that do not match) before anything is written, and Error(io).
void write_file(const std::filesystem::path& path, const Metadata& metadata,
                const std::vector<TensorToWrite>& tensors);
/// The same into memory (for tests and small files).
std::vector<std::byte> write_memory(const Metadata& metadata, const std::vector<TensorToWrite>& tensors);
/// The same as a split set of `n_shards` files `PREFIX-00001-of-0000N.gguf`; metadata in the first, tensors
/// in order, divided evenly by bytes. Returns the paths.
std::vector<std::filesystem::path> write_split(const std::filesystem::path& prefix, const Metadata& metadata,
                                               const std::vector<TensorToWrite>& tensors,
                                               std::size_t n_shards);

}  // namespace quipu::gguf
