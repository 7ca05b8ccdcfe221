// What tests of plans share: weights on the CPU, and runs of one input and one output.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backend/device.h"
#include "quant/quant.h"

namespace quipu::test {

inline std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

/// A weight on the CPU with given or random values.
class TestWeight {
 public:
  TestWeight(Device& device, std::string name, ElementType type, WeightRole role, const Shape& shape,
             std::vector<float> values)
      : values_(std::move(values)),
        storage_(device.create_weight(type, role, shape)),
        weight_{std::move(name), type, role, shape, storage_.get()} {
    const std::size_t n_slabs = shape.rank() == 3 ? shape.dim(0) : 1;
    const std::size_t slab_elements = values_.size() / n_slabs;
    for (std::size_t slab = 0; slab < n_slabs; ++slab) {
      std::vector<std::byte> bytes(row_bytes(type, slab_elements));
      encode_row(type, std::span(values_).subspan(slab * slab_elements, slab_elements), bytes);
      storage_->set_rows(slab, 0, bytes);
    }
  }

  const Weight& weight() const { return weight_; }
  const std::vector<float>& values() const { return values_; }

 private:
  std::vector<float> values_;
  std::unique_ptr<WeightStorage> storage_;
  Weight weight_;
};

inline std::vector<float> run(Plan& plan, const std::vector<float>& x, std::size_t n_tokens,
                              std::size_t out_width, unsigned n_threads = 2) {
  std::vector<float> out(n_tokens * out_width);
  const void* inputs[] = {x.data()};
  float* outputs[] = {out.data()};
  plan.run({.extents = {n_tokens, 0},
            .inputs = inputs,
            .outputs = outputs,
            .layouts = {},
            .n_threads = n_threads});
  return out;
}

class CpuPlan : public testing::Test {
 protected:
  std::unique_ptr<Device> device_ = create_cpu_device();
  Graph graph_;
};

}  // namespace quipu::test
