// The tiny golden models of tests/data/arch: a description (NAME.json) and the output expected of it
// (NAME.f32). The weights are not stored; they follow from the tensors' names by a fixed rule, in float32
// (golden_weights).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"
#include "quant/element_type.h"

namespace quipu::test {

struct GoldenTensor {
  std::string name;
  ElementType type = ElementType::f32;  ///< f32, f16 or i32
  std::vector<std::uint64_t> dims;      ///< innermost first
};

struct Golden {
  std::string name;
  std::string architecture;
  std::uint64_t seed = 0;
  bool outputs_embeddings = false;   ///< else logits
  bool f16_cache = false;            ///< computed with keys and values in F16, else F32
  std::vector<std::int32_t> tokens;  ///< one sequence, positions 0, 1, ...; every token is an output
  gguf::Metadata metadata;
  std::vector<GoldenTensor> tensors;
  std::size_t rows = 0;
  std::size_t cols = 0;
  std::vector<float> expected;  ///< [rows, cols], row-major
};

/// Names of the goldens in the project, sorted; those of `family` ("qwen3": qwen3, qwen3-full, qwen3-v-...,
/// not qwen3moe-...) or all of them.
std::vector<std::string> golden_names(std::string_view family = "");

/// Those of the project and of the shared reference data, where that is present; sorted.
std::vector<std::string> all_golden_names();
/// The architecture that a golden's name begins with: all of it but "-experts", "-full" and "-v-VARIANT".
std::string_view golden_architecture(std::string_view name);

/// By name, from tests/data/arch or else the shared reference data; or any pair of files by the path of its
/// .json.
Golden load_golden(std::string_view name);
Golden load_golden_file(const std::filesystem::path& json);

/// The same architecture with widths and head counts `factor` times as large, head size and everything else
/// kept, and no expected output. With a factor of 8 all matrices have rows of whole 256-element blocks.
Golden widened(const Golden& golden, std::uint32_t factor);

/// The float32 values of a tensor, innermost dimension first.
std::vector<float> golden_weights(const GoldenTensor& tensor, std::uint64_t seed);

/// The model as a GGUF file. With `matrices`, weights of two or more dimensions whose rows are whole blocks
/// of that type are encoded in it; norms, biases, the experts' router, and matrices with other row lengths
/// stay as described. Rows have 32 to 128 elements; widened() makes longer ones for the 256-element formats.
std::vector<std::byte> golden_model(const Golden& golden, std::optional<ElementType> matrices = std::nullopt);
void write_golden_model(const std::filesystem::path& path, const Golden& golden,
                        std::optional<ElementType> matrices = std::nullopt);

/// Normalized mean squared error: sum (actual - expected)^2 / sum expected^2. Infinity for different lengths
/// or any value that is not finite.
double nmse(std::span<const float> actual, std::span<const float> expected);

}  // namespace quipu::test
