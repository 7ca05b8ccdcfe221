// The element types that tensors are stored in, with the numbers that GGUF files give them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace quipu {

/// Values are GGUF's type numbers.
enum class ElementType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  iq4_nl = 20,
  iq4_xs = 23,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  bf16 = 30,
  mxfp4 = 39,
  nvfp4 = 40,
};

struct ElementTypeInfo {
  ElementType type;
  std::string_view name;         ///< as tools print it: "F32", "Q4_K"
  std::uint32_t block_elements;  ///< elements per block, along the innermost dimension
  std::uint32_t block_bytes;
  bool decodable;  ///< decode_row and encode_row exist (the float and block formats)
};

/// Nothing for a number that is not in the enumeration.
std::optional<ElementType> element_type_from_number(std::uint32_t number);
const ElementTypeInfo& info(ElementType type);
std::span<const ElementTypeInfo> all_element_types();

/// Name of a GGUF type number that Quipu knows of but cannot read ("IQ2_XXS", ...); empty for an unknown
/// number.
std::string_view foreign_type_name(std::uint32_t number);

/// Bytes of `n_elements`, which must be whole blocks.
std::size_t row_bytes(ElementType type, std::size_t n_elements);

}  // namespace quipu
