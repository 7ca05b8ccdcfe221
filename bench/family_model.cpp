// Writes a model of an architecture with pseudo-random weights in Q8_0, so that `quipu bench` can compare
// families at equal size: as many layers of one width as fit into about 300 MB. Equal seeds give equal files.
// Run: family_model ARCHITECTURE FILE.gguf [SEED]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "gguf/writer.h"
#include "model/hparams.h"
#include "model/weights.h"
#include "quant/quant.h"

namespace quipu {
namespace {

constexpr std::uint64_t kFileBytes = 300'000'000;
constexpr std::uint32_t kVocab = 32000;
constexpr std::uint32_t kMaxLayers = 64;

struct Family {
  std::string_view name;
  bool fused;  ///< published files have attn_qkv, with a bias where there are biases at all
  bool biases;
  std::vector<std::pair<std::string_view, std::uint32_t>> sizes;  ///< other than kSizes
};

const std::vector<std::pair<std::string_view, std::uint32_t>> kSizes = {
    {"context_length", 8192},       {"embedding_length", 1024},     {"feed_forward_length", 3072},
    {"attention.head_count", 16},   {"attention.head_count_kv", 4}, {"attention.key_length", 64},
    {"attention.value_length", 64}, {"vocab_size", kVocab},
};

const std::vector<Family> kFamilies = {
    {"llama", false, false, {}},
    {"qwen3", false, false, {}},
    {"gemma3", false, false, {{"attention.sliding_window", 512}}},
    {"phi3", true, false, {}},
    {"olmo2", false, false, {}},
    {"gptneox",
     true,
     true,
     {{"feed_forward_length", 4096}, {"attention.head_count_kv", 16}, {"rope.dimension_count", 16}}},
    {"gpt2", true, true, {{"feed_forward_length", 4096}, {"attention.head_count_kv", 16}}},
    {"granitemoe",
     false,
     false,
     {{"feed_forward_length", 1024}, {"expert_count", 8}, {"expert_used_count", 2}}},
    {"qwen3moe",
     false,
     false,
     {{"expert_feed_forward_length", 1024}, {"expert_count", 8}, {"expert_used_count", 2}}},
};

gguf::Metadata metadata_of(const Family& family, std::uint32_t n_layers) {
  gguf::Metadata metadata(std::string{family.name});
  metadata.set("general.architecture", std::string(family.name));
  metadata.set("general.name", fmt::format("random {}", family.name));
  metadata.set("tokenizer.ggml.model", std::string("no_vocab"));
  const auto set = [&](std::string_view key, gguf::Value value) {
    metadata.set(fmt::format("{}.{}", family.name, key), std::move(value));
  };
  for (const auto& [key, size] : kSizes) set(key, size);
  for (const auto& [key, size] : family.sizes) set(key, size);
  set("block_count", n_layers);
  set("attention.layer_norm_epsilon", 1e-5f);
  set("attention.layer_norm_rms_epsilon", 1e-5f);
  return metadata;
}

/// What such a model must have, and its matrix of queries, keys and values in place of three.
std::vector<WeightSpec> weights_of(const Family& family, const gguf::Metadata& metadata) {
  ModelWeights unused;
  std::vector<WeightSpec> all = list_weights(read_hparams(metadata, kVocab), unused), chosen;
  std::set<std::string> names;
  for (WeightSpec& spec : all) {
    const bool fused = family.fused && (spec.name.ends_with("attn_qkv.weight") ||
                                        (family.biases && spec.name.ends_with("attn_qkv.bias")));
    if (!fused && (spec.use != WeightUse::required || names.contains(spec.replaced_by))) continue;
    names.insert(spec.name);
    spec.slot = nullptr;
    chosen.push_back(std::move(spec));
  }
  return chosen;
}

struct Layout {
  ElementType type;
  std::vector<std::uint64_t> dims;  ///< innermost first
  std::uint64_t n_elements = 1;
};

Layout layout_of(const WeightSpec& spec) {
  Layout layout{spec.role == WeightRole::matrix ? ElementType::q8_0 : ElementType::f32, {}};
  // Published files keep the experts' router in floats.
  if (spec.name.find("ffn_gate_inp") != std::string::npos) layout.type = ElementType::f32;
  for (std::size_t i = spec.shape.rank(); i-- > 0;) {
    layout.dims.push_back(spec.shape.dim(i));
    layout.n_elements *= layout.dims.back();
  }
  return layout;
}

std::uint64_t bytes_of(const std::vector<WeightSpec>& specs) {
  std::uint64_t bytes = 0;
  for (const WeightSpec& spec : specs) {
    const Layout layout = layout_of(spec);
    bytes += row_bytes(layout.type, layout.dims[0]) * (layout.n_elements / layout.dims[0]);
  }
  return bytes;
}

/// Norms near 1, biases near 0, matrices that keep the size of what they multiply.
void produce(const WeightSpec& spec, std::uint64_t seed,
             const std::function<void(std::span<const std::byte>)>& write) {
  const Layout layout = layout_of(spec);
  for (const char c : spec.name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::mt19937_64 bits(seed);
  const std::size_t width = layout.dims[0];
  const bool is_matrix = spec.role == WeightRole::matrix;
  const bool is_factor = !is_matrix && spec.name.ends_with(".weight");
  const float spread = is_matrix ? std::sqrt(3.0f / static_cast<float>(width)) : 0.1f;
  std::vector<float> values(width);
  std::vector<std::byte> row(row_bytes(layout.type, width));
  for (std::uint64_t i = 0; i < layout.n_elements; i += width) {
    for (float& value : values) {
      const float unit = static_cast<float>(bits() >> 40) * 0x1p-23f - 1;  // -1 to 1
      value = (is_factor ? 1.0f : 0.0f) + unit * spread;
    }
    encode_row(layout.type, values, row);
    write(row);
  }
}

int run(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  const auto family = std::ranges::find(kFamilies, name, &Family::name);
  if (argc < 3 || family == kFamilies.end()) {
    std::string names;
    for (const Family& one : kFamilies) names += fmt::format(" {}", one.name);
    fmt::print(stderr, "family_model ARCHITECTURE FILE.gguf [SEED], of:{}\n", names);
    return 2;
  }
  const std::uint64_t seed = argc > 3 ? std::stoull(argv[3]) : 1;
  std::uint32_t n_layers = 1;
  const auto bytes_with = [&](std::uint32_t n) {
    return bytes_of(weights_of(*family, metadata_of(*family, n)));
  };
  while (n_layers < kMaxLayers && bytes_with(n_layers + 1) <= kFileBytes) ++n_layers;

  const gguf::Metadata metadata = metadata_of(*family, n_layers);
  const std::vector<WeightSpec> specs = weights_of(*family, metadata);
  std::vector<gguf::TensorToWrite> tensors;
  for (const WeightSpec& spec : specs) {
    const Layout layout = layout_of(spec);
    tensors.push_back({spec.name, layout.type, layout.dims,
                       [&spec, seed](const auto& write) { produce(spec, seed, write); }});
  }
  gguf::write_file(argv[2], metadata, tensors);
  fmt::print("{}: {} layers, {} bytes of weights\n", argv[2], n_layers, bytes_of(specs));
  return 0;
}

}  // namespace
}  // namespace quipu

int main(int argc, char** argv) {
  try {
    return quipu::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
