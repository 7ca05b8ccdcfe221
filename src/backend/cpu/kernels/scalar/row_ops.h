// The scalar reference of the operations on rows and of attention. Contracts: kernels/kernels.h,
// kernels/attention.h.
#pragma once

#include "backend/cpu/kernels/attention.h"
#include "backend/cpu/kernels/kernels.h"

namespace quipu::cpu::scalar {

void rms_norm(const float* x, const float* weight, float eps, std::size_t n, float* out);
void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::size_t n, float* out);
void rope(const float* x, const float* cos_sin, std::size_t n_rot, bool halves, std::size_t n, float* out);
void add(const float* a, const float* b, std::size_t n, float* out);
void multiply(const float* a, const float* b, std::size_t n, float* out);
void scale(const float* x, float factor, std::size_t n, float* out);
void gate(GatedActivation activation, const float* gate, const float* up, std::size_t n, float* out);
void activate(GatedActivation activation, const float* x, std::size_t n, float* out);
void soft_cap(const float* x, float cap, std::size_t n, float* out);
void clamp(const float* x, float low, float high, std::size_t n, float* out);
void softmax(const float* x, std::size_t n, float* out);
void sigmoid(const float* x, std::size_t n, float* out);
void accumulate(float factor, const float* x, std::size_t n, float* acc);

void attention(const AttentionTask& task);
void store_cell(const KvLayout& layout, std::byte* page, std::size_t slot, const float* k, const float* v);
void encode_cells(ElementType type, const float* x, std::size_t n, std::byte* out);

}  // namespace quipu::cpu::scalar
