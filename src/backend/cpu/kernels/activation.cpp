#include "backend/cpu/kernels/activation.h"

#include <cstring>

#include "backend/cpu/kernels/panel.h"
#include "base/checked.h"
#include "base/error.h"

namespace quipu::cpu {

ActivationFormat activation_format(ElementType weight_type) {
  switch (weight_type) {
    case ElementType::f32:
    case ElementType::f16: return ActivationFormat::f32;
    case ElementType::bf16: return ActivationFormat::bf16;
    default: break;
  }
  return panel_block_layout(weight_type).elements == 32 ? ActivationFormat::q8_32 : ActivationFormat::q8_256;
}

std::size_t activation_block(ActivationFormat format) {
  switch (format) {
    case ActivationFormat::f32:
    case ActivationFormat::bf16: return 1;
    case ActivationFormat::q8_32: return 32;
    case ActivationFormat::q8_256: return 256;
  }
  return 1;
}

std::size_t activation_row_bytes(ActivationFormat format, std::size_t n_cols) {
  std::size_t n_units = n_cols;
  std::size_t unit_bytes = sizeof(float);
  switch (format) {
    case ActivationFormat::f32: break;
    case ActivationFormat::bf16: n_units = ceil_div<std::size_t>(n_cols, 2); break;
    case ActivationFormat::q8_32:
      n_units = ceil_div<std::size_t>(n_cols, 32);
      unit_bytes = sizeof(ActivationBlock32);
      break;
    case ActivationFormat::q8_256:
      n_units = ceil_div<std::size_t>(n_cols, 256);
      unit_bytes = sizeof(ActivationBlock256);
      break;
  }
  const auto used = checked_mul(n_units, unit_bytes);
  const auto rounded = used ? checked_round_up<std::size_t>(*used, 64) : std::nullopt;
  if (!rounded) fail(ErrorCode::out_of_memory, "a row of {} columns is too large", n_cols);
  return *rounded;
}

ActivationBlock32 activation_block32(const std::byte* row, std::size_t i) {
  ActivationBlock32 block;
  std::memcpy(&block, row + i * sizeof block, sizeof block);
  return block;
}

ActivationBlock256 activation_block256(const std::byte* row, std::size_t i) {
  ActivationBlock256 block;
  std::memcpy(&block, row + i * sizeof block, sizeof block);
  return block;
}

}  // namespace quipu::cpu
