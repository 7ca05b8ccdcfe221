// The table behind element_type.h: names, block shapes, and the numbers of formats that Quipu does not read.
// A new type is one line in kTypes (and its codec in quant.cpp); its line leaves kForeignTypes.
#include "quant/element_type.h"

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "base/error.h"

namespace quipu {
namespace {

constexpr std::array kTypes = {
    ElementTypeInfo{ElementType::f32, "F32", 1, 4, true},
    ElementTypeInfo{ElementType::f16, "F16", 1, 2, true},
    ElementTypeInfo{ElementType::q4_0, "Q4_0", 32, 18, true},
    ElementTypeInfo{ElementType::q4_1, "Q4_1", 32, 20, true},
    ElementTypeInfo{ElementType::q5_0, "Q5_0", 32, 22, true},
    ElementTypeInfo{ElementType::q5_1, "Q5_1", 32, 24, true},
    ElementTypeInfo{ElementType::q8_0, "Q8_0", 32, 34, true},
    ElementTypeInfo{ElementType::q2_k, "Q2_K", 256, 84, true},
    ElementTypeInfo{ElementType::q3_k, "Q3_K", 256, 110, true},
    ElementTypeInfo{ElementType::q4_k, "Q4_K", 256, 144, true},
    ElementTypeInfo{ElementType::q5_k, "Q5_K", 256, 176, true},
    ElementTypeInfo{ElementType::q6_k, "Q6_K", 256, 210, true},
    ElementTypeInfo{ElementType::iq4_nl, "IQ4_NL", 32, 18, true},
    ElementTypeInfo{ElementType::iq4_xs, "IQ4_XS", 256, 136, true},
    ElementTypeInfo{ElementType::i8, "I8", 1, 1, false},
    ElementTypeInfo{ElementType::i16, "I16", 1, 2, false},
    ElementTypeInfo{ElementType::i32, "I32", 1, 4, false},
    ElementTypeInfo{ElementType::i64, "I64", 1, 8, false},
    ElementTypeInfo{ElementType::f64, "F64", 1, 8, false},
    ElementTypeInfo{ElementType::bf16, "BF16", 1, 2, true},
    ElementTypeInfo{ElementType::mxfp4, "MXFP4", 32, 17, true},
    ElementTypeInfo{ElementType::nvfp4, "NVFP4", 64, 36, true},
};

struct ForeignType {
  std::uint32_t number;
  std::string_view name;
};

// Numbers 4, 5, 31 to 33 and 36 to 38 were given to formats that have since been withdrawn.
constexpr std::array kForeignTypes = {
    ForeignType{4, "Q4_2"},        ForeignType{5, "Q4_3"},        ForeignType{9, "Q8_1"},
    ForeignType{15, "Q8_K"},       ForeignType{16, "IQ2_XXS"},    ForeignType{17, "IQ2_XS"},
    ForeignType{18, "IQ3_XXS"},    ForeignType{19, "IQ1_S"},      ForeignType{21, "IQ3_S"},
    ForeignType{22, "IQ2_S"},      ForeignType{29, "IQ1_M"},      ForeignType{31, "Q4_0_4_4"},
    ForeignType{32, "Q4_0_4_8"},   ForeignType{33, "Q4_0_8_8"},   ForeignType{34, "TQ1_0"},
    ForeignType{35, "TQ2_0"},      ForeignType{36, "IQ4_NL_4_4"}, ForeignType{37, "IQ4_NL_4_8"},
    ForeignType{38, "IQ4_NL_8_8"}, ForeignType{41, "Q1_0"},       ForeignType{42, "Q2_0"},
};

const ElementTypeInfo* find(std::uint32_t number) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(), [number](const ElementTypeInfo& candidate) {
    return static_cast<std::uint32_t>(candidate.type) == number;
  });
  return found == kTypes.end() ? nullptr : &*found;
}

}  // namespace

std::optional<ElementType> element_type_from_number(std::uint32_t number) {
  const ElementTypeInfo* found = find(number);
  return found == nullptr ? std::nullopt : std::optional(found->type);
}

const ElementTypeInfo& info(ElementType type) {
  const ElementTypeInfo* found = find(static_cast<std::uint32_t>(type));
  QUIPU_CHECK(found != nullptr);
  return *found;
}

std::span<const ElementTypeInfo> all_element_types() {
  return kTypes;
}

std::string_view foreign_type_name(std::uint32_t number) {
  const auto found =
      std::find_if(kForeignTypes.begin(), kForeignTypes.end(),
                   [number](const ForeignType& candidate) { return candidate.number == number; });
  return found == kForeignTypes.end() ? std::string_view() : found->name;
}

std::size_t row_bytes(ElementType type, std::size_t n_elements) {
  const ElementTypeInfo& of_type = info(type);
  if (n_elements % of_type.block_elements != 0) {
    fail(ErrorCode::invalid_argument, "{} elements of type {}: not a multiple of its block of {}", n_elements,
         of_type.name, of_type.block_elements);
  }
  const auto bytes = checked_mul<std::size_t>(n_elements / of_type.block_elements, of_type.block_bytes);
  if (!bytes) {
    fail(ErrorCode::invalid_argument, "{} elements of type {}: the size in bytes overflows", n_elements,
         of_type.name);
  }
  return *bytes;
}

}  // namespace quipu
