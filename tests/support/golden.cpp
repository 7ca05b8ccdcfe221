#include "support/golden.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "base/half.h"
#include "gguf/writer.h"
#include "quant/quant.h"
#include "support/files.h"

namespace quipu::test {
namespace {

using nlohmann::json;

gguf::Value metadata_value(const std::string& type, const json& value) {
  if (type == "u32") return value.get<std::uint32_t>();
  if (type == "f32") return value.get<float>();
  if (type == "bool") return value.get<bool>();
  if (type == "str") return value.get<std::string>();
  if (type == "u32[]") return gguf::Array(value.get<std::vector<std::uint32_t>>());
  if (type == "u64[]") return gguf::Array(value.get<std::vector<std::uint64_t>>());
  if (type == "f32[]") return gguf::Array(value.get<std::vector<float>>());
  throw std::runtime_error("golden: unknown metadata type " + type);
}

ElementType tensor_type(const std::string& type) {
  if (type == "f32") return ElementType::f32;
  if (type == "f16") return ElementType::f16;
  if (type == "i32") return ElementType::i32;
  throw std::runtime_error("golden: unknown tensor type " + type);
}

std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdu;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53u;
  return x ^ (x >> 33);
}

/// FNV-1a, but for its offset, which is the rule's own.
std::uint64_t hash_name(std::string_view name, std::uint64_t seed) {
  std::uint64_t hash = 1469598103934665603u;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211u;
  }
  return hash ^ mix64(seed);
}

/// Nearly normal: the sum of four uniform numbers.
float bell(std::uint64_t r) {
  const std::uint64_t sum = (r & 0xffff) + ((r >> 16) & 0xffff) + ((r >> 32) & 0xffff) + (r >> 48);
  return (static_cast<float>(sum) / 32768.0f - 4.0f) * 0.8660254f;
}

/// From a bell-shaped z to a weight: the first kind that the tensor's name matches.
std::function<float(float)> weight_rule(const GoldenTensor& tensor) {
  const auto named = [&](std::initializer_list<std::string_view> parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](std::string_view part) { return tensor.name.find(part) != std::string::npos; });
  };
  const float scale = 1.0f / std::sqrt(static_cast<float>(tensor.dims.at(0)));
  if (named({"ssm_a"})) return [](float z) { return -(0.5f + std::fabs(z)); };
  if (named({"norm"}) && named({".weight"})) return [](float z) { return 1.0f + 0.1f * z; };
  if (named({"rope_factors", "rope_freqs"})) return [](float z) { return 1.0f + 0.1f * std::fabs(z); };
  if (named({"time_mix_decay", "time_mix_first"})) return [](float z) { return 0.3f * z; };
  if (named({"attn_sinks"})) return [](float z) { return z; };
  if (named({".bias", "probs_b", "lerp", "hc_", "ssm_d", "ssm_dt"})) return [](float z) { return 0.1f * z; };
  if (named({"token_embd", "position_embd", "token_types"})) return [](float z) { return 0.7f * z; };
  if (named({"gate_inp"})) return [scale](float z) { return (2.0f * z) * scale; };
  return [scale](float z) { return z * scale; };
}

std::size_t n_elements(const GoldenTensor& tensor) {
  std::size_t count = 1;
  for (const std::uint64_t dim : tensor.dims) count *= dim;
  return count;
}

template <typename T>
std::vector<std::byte> to_bytes(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> described_bytes(const GoldenTensor& tensor, std::uint64_t seed) {
  if (tensor.type == ElementType::i32) {
    const std::uint64_t hash = hash_name(tensor.name, seed);
    std::vector<std::int32_t> values(n_elements(tensor));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::int32_t>(mix64(hash + i) % 4);
    return to_bytes(values);
  }
  const std::vector<float> weights = golden_weights(tensor, seed);
  if (tensor.type == ElementType::f32) return to_bytes(weights);
  std::vector<std::uint16_t> halves(weights.size());
  std::transform(weights.begin(), weights.end(), halves.begin(), f32_to_f16);
  return to_bytes(halves);
}

/// How many of a tensor's dimensions, from the innermost, are widths; others count tokens, experts, or a
/// head's parts.
std::size_t n_widths(const GoldenTensor& tensor) {
  const auto named = [&](std::string_view part) { return tensor.name.find(part) != std::string::npos; };
  if (named("attn_q_norm") || named("attn_k_norm") || named("rope_freqs")) return 0;
  if (named("token_embd") || tensor.name.starts_with("output.") || named("gate_inp")) return 1;
  return std::min<std::size_t>(tensor.dims.size(), 2);  // a third one counts experts
}

bool can_encode(const GoldenTensor& tensor, ElementType type) {
  return tensor.dims.size() >= 2 && tensor.type != ElementType::i32 &&
         tensor.name.find("gate_inp") == std::string::npos && tensor.dims[0] % info(type).block_elements == 0;
}

std::vector<std::byte> encoded_bytes(const GoldenTensor& tensor, std::uint64_t seed, ElementType type) {
  const std::vector<float> weights = golden_weights(tensor, seed);
  const std::size_t row = tensor.dims[0];
  const std::size_t bytes_per_row = row_bytes(type, row);
  std::vector<std::byte> bytes(weights.size() / row * bytes_per_row);
  for (std::size_t r = 0; r < weights.size() / row; ++r) {
    encode_row(type, std::span(weights).subspan(r * row, row),
               std::span(bytes).subspan(r * bytes_per_row, bytes_per_row));
  }
  return bytes;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::vector<std::string> golden_names(std::string_view family) {
  std::vector<std::string> names;
  for (const std::string& name : names_in(data_dir() / "arch")) {
    const bool wanted =
        family.empty() || name == family ||
        (name.starts_with(family) && name.size() > family.size() && name[family.size()] == '-');
    if (wanted) names.push_back(name);
  }
  return names;
}

std::vector<std::string> all_golden_names() {
  std::vector<std::string> names = golden_names();
  const auto shared = shared_dir();
  if (!shared) return names;
  const std::vector<std::string> more = names_in(*shared / "golden" / "arch");
  names.insert(names.end(), more.begin(), more.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string_view golden_architecture(std::string_view name) {
  name = name.substr(0, name.find("-v-"));
  for (const std::string_view ending : {"-full", "-experts"}) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  return name;
}

Golden load_golden(std::string_view name) {
  const std::string file = std::string(name) + ".json";
  const auto shared = shared_dir();
  if (shared && !std::filesystem::exists(data_dir() / "arch" / file))
    return load_golden_file(*shared / "golden" / "arch" / file);
  return load_golden_file(data_dir() / "arch" / file);
}

Golden load_golden_file(const std::filesystem::path& path) {
  const std::vector<std::byte> text = read_bytes(path);
  const auto* begin = reinterpret_cast<const char*>(text.data());
  const json description = json::parse(begin, begin + text.size());
  Golden golden;
  golden.name = path.stem().string();
  golden.architecture = description.at("arch").get<std::string>();
  golden.seed = description.at("seed").get<std::uint64_t>();
  golden.outputs_embeddings = description.at("output") == "embeddings";
  golden.f16_cache = description.at("kv_cache") == "f16";
  golden.tokens = description.at("tokens").get<std::vector<std::int32_t>>();
  golden.metadata = gguf::Metadata(golden.name);
  for (const json& entry : description.at("kv")) {
    golden.metadata.set(entry.at(0).get<std::string>(),
                        metadata_value(entry.at(1).get<std::string>(), entry.at(2)));
  }
  for (const json& entry : description.at("tensors")) {
    golden.tensors.push_back({entry.at(0).get<std::string>(), tensor_type(entry.at(1).get<std::string>()),
                              entry.at(2).get<std::vector<std::uint64_t>>()});
  }
  golden.rows = description.at("rows").get<std::size_t>();
  golden.cols = description.at("cols").get<std::size_t>();
  golden.expected = read_f32(std::filesystem::path(path).replace_extension(".f32"));
  if (golden.expected.size() != golden.rows * golden.cols) {
    throw std::runtime_error(golden.name + ": the expected output is not [rows, cols]");
  }
  return golden;
}

Golden widened(const Golden& golden, std::uint32_t factor) {
  Golden wide = golden;
  wide.name += "-wide";
  wide.expected.clear();
  for (const char* key : {"embedding_length", "feed_forward_length", "expert_feed_forward_length",
                          "attention.head_count", "attention.head_count_kv"}) {
    const std::string full_key = golden.architecture + "." + key;
    if (const auto value = golden.metadata.get_u32(full_key)) wide.metadata.set(full_key, *value * factor);
  }
  for (GoldenTensor& tensor : wide.tensors) {
    for (std::size_t d = 0; d < n_widths(tensor); ++d) tensor.dims[d] *= factor;
  }
  return wide;
}

std::vector<float> golden_weights(const GoldenTensor& tensor, std::uint64_t seed) {
  const std::uint64_t hash = hash_name(tensor.name, seed);
  const std::function<float(float)> rule = weight_rule(tensor);
  std::vector<float> weights(n_elements(tensor));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = rule(bell(mix64(hash + i)));
  return weights;
}

namespace {

/// The tensors' bytes, and the list for the writer that points into them.
struct Contents {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<gguf::TensorToWrite> tensors;
};

Contents contents_of(const Golden& golden, std::optional<ElementType> matrices) {
  Contents contents;
  contents.bytes.reserve(golden.tensors.size());
  for (const GoldenTensor& tensor : golden.tensors) {
    const ElementType type = matrices && can_encode(tensor, *matrices) ? *matrices : tensor.type;
    contents.bytes.push_back(type == tensor.type ? described_bytes(tensor, golden.seed)
                                                 : encoded_bytes(tensor, golden.seed, type));
    contents.tensors.push_back(gguf::tensor_in_memory(tensor.name, type, tensor.dims, contents.bytes.back()));
  }
  return contents;
}

}  // namespace

std::vector<std::byte> golden_model(const Golden& golden, std::optional<ElementType> matrices) {
  return gguf::write_memory(golden.metadata, contents_of(golden, matrices).tensors);
}

void write_golden_model(const std::filesystem::path& path, const Golden& golden,
                        std::optional<ElementType> matrices) {
  gguf::write_file(path, golden.metadata, contents_of(golden, matrices).tensors);
}

double nmse(std::span<const float> actual, std::span<const float> expected) {
  double error = 0;
  double norm = 0;
  if (actual.size() != expected.size()) return std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double a = actual[i];
    const double b = expected[i];
    error += (a - b) * (a - b);
    norm += b * b;
  }
  const double result = error == 0 ? 0 : error / norm;
  return std::isfinite(result) ? result : std::numeric_limits<double>::infinity();
}

}  // namespace quipu::test
