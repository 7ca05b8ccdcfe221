#include "model/arch/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "model/hparams_reader.h"
#include "model/weights.h"

namespace quipu {
namespace {

std::string may(Presence presence, std::string_view what) {
  if (presence == Presence::absent) return "";
  return fmt::format("{}{}", presence == Presence::optional ? "optional " : "", what);
}

/// The parts that are not empty, with commas.
std::string listed(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text += ", ";
    text += part;
  }
  return text;
}

std::string name_of(Activation activation) {
  switch (activation) {
    case Activation::silu: return "SiLU";
    case Activation::gelu_tanh: return "GELU (tanh form)";
    case Activation::gelu_quick: return "quick GELU";
    case Activation::relu: return "ReLU";
    case Activation::relu_squared: return "squared ReLU";
    default: return "other";
  }
}

std::string structure_of(const Architecture& arch) {
  switch (arch.structure) {
    case Structure::decoder: return arch.never_causal ? "decoder that sees all of a text" : "decoder";
    case Structure::encoder: return "encoder";
    case Structure::encoder_decoder: return "encoder and decoder";
  }
  return "";
}

std::string norms_of(const Architecture& arch) {
  const NormDescription& norm = arch.norm;
  std::string text = norm.kind == NormKind::rms     ? "RMS"
                     : norm.kind == NormKind::layer ? "layer"
                                                    : "RMS or layer";
  text += " norms";
  if (!norm.weights) text += " without weights";
  if (norm.bias != Presence::absent) text += fmt::format(" with {}", may(norm.bias, "biases"));
  switch (norm.placement) {
    case NormPlacement::before: text += ", before blocks"; break;
    case NormPlacement::around: text += ", before and after blocks"; break;
    case NormPlacement::after: text += ", after blocks"; break;
    case NormPlacement::after_sum: text += ", after sums"; break;
  }
  return listed(
      {text, norm.feed_forward == Presence::absent ? "blocks side by side" : "",
       norm.feed_forward == Presence::optional ? "blocks side by side where ffn_norm is missing" : "",
       norm.parallel_key ? "blocks side by side where the file says so" : "",
       norm.sub ? "norms inside blocks" : ""});
}

std::string positions_of(const AttentionDescription& attention) {
  switch (attention.positions) {
    case PositionKind::alibi: return "ALiBi";
    case PositionKind::relative: return "learned relative biases";
    case PositionKind::none: return "";
    case PositionKind::rotation: break;
  }
  const bool halves = attention.rope == RopeStyle::halves || attention.rope_sections != RopeSections::none;
  return fmt::format("rotation in {}{}{}", halves ? "halves" : "pairs",
                     attention.rope_factors ? " with optional factors" : "",
                     attention.rope_sections != RopeSections::none ? ", several dimensions" : "");
}

std::string qk_norm_of(const AttentionDescription& attention) {
  const std::string_view after = attention.norm_after_rope ? " after rotation" : "";
  switch (attention.qk_norm) {
    case QkNorm::none: return "";
    case QkNorm::whole:
      return fmt::format("{}{}", may(attention.qk_norm_presence, "norm of all queries and keys"), after);
    default: return fmt::format("{}{}", may(attention.qk_norm_presence, "norm of each query and key"), after);
  }
}

std::string attention_of(const Architecture& arch) {
  const AttentionDescription& attention = arch.attention;
  return listed(
      {attention.kind == AttentionKind::latent ? "latent" : "heads", positions_of(attention),
       qk_norm_of(attention), may(attention.qkv_bias, "biases of queries, keys and values"),
       may(attention.output_bias, "bias of the output"), may(attention.sinks, "sinks"),
       may(attention.gate, "gate"), attention.clamp ? "clamping" : "", attention.soft_cap ? "soft-cap" : "",
       attention.windows.period != 0 ? fmt::format("windows, period {}", attention.windows.period) : "",
       attention.windows.listed ? "windows, layers as listed" : "",
       attention.unrotated.without_window ? "layers without window do not rotate" : "",
       attention.unrotated.period != 0
           ? fmt::format("one of {} layers does not rotate", attention.unrotated.period)
           : ""});
}

std::string feed_forward_of(const Architecture& arch) {
  const FeedForwardDescription& description = arch.feed_forward;
  const bool never_gated = description.gate == Presence::absent && description.gate_in_up == Presence::absent;
  const bool always_gated =
      description.gate == Presence::required || description.gate_in_up == Presence::required;
  const std::string kind = never_gated ? name_of(description.ungated_activation)
                                       : fmt::format("{}gated {}", always_gated ? "" : "optionally ",
                                                     name_of(description.activation));
  return listed({kind, may(description.up_bias, "biases"),
                 description.gate_in_up != Presence::absent ? "gate and up in one matrix" : ""});
}

std::string experts_of(const Architecture& arch) {
  const ExpertDescription& experts = arch.experts;
  if (!experts.available) return "";
  const char* gating = experts.gating == ExpertGating::softmax   ? "softmax gating"
                       : experts.gating == ExpertGating::sigmoid ? "sigmoid gating"
                                                                 : "softmax over those chosen";
  return listed({gating, experts.gating_key ? "or as the file says" : "",
                 experts.normalize_weights ? "normalized weights" : "",
                 experts.shared == SharedExperts::none    ? ""
                 : experts.shared == SharedExperts::dense ? "optional dense layer beside them"
                                                          : "shared experts",
                 may(experts.selection_bias, "selection bias")});
}

std::string head_of(const Architecture& arch) {
  const HeadDescription& head = arch.head;
  if (!head.logits) return listed({"embeddings", head.rank.available ? "ranking" : ""});
  return listed({"logits", head.bias ? "optional bias" : "", head.soft_cap ? "soft-cap" : "",
                 head.rank.available ? "ranking" : ""});
}

/// Metadata with every key that reading an architecture needs, small and consistent.
gguf::Metadata example_metadata(const Architecture& arch, bool with_experts) {
  gguf::Metadata metadata("example");
  const auto set = [&](std::string_view name, gguf::Value value) {
    metadata.set(fmt::format("{}.{}", arch.name, name), std::move(value));
  };
  metadata.set("general.architecture", std::string(arch.name));
  metadata.set("tokenizer.ggml.token_type_count", std::uint32_t{2});
  const std::pair<std::string_view, std::uint32_t> sizes[] = {
      {"context_length", 128},
      {"embedding_length", 64},
      {"block_count", 2},
      {"feed_forward_length", 96},
      {"attention.head_count", 4},
      {"attention.head_count_kv", 2},
      {"attention.sliding_window", 16},
      {"attention.kv_lora_rank", 32},
      {"attention.relative_buckets_count", 8},
      {"attention.key_length_swa", 16},
      {"attention.value_length_swa", 16},
      {"interleave_moe_layer_step", 1},
      {"experts_per_group", 2},
  };
  for (const auto& [name, size] : sizes) set(name, size);
  set("expert_group_scale", 0.05f);
  set("attention.layer_norm_epsilon", 1e-5f);
  set("attention.layer_norm_rms_epsilon", 1e-5f);
  set("rope.dimension_sections", gguf::Array(std::vector<std::uint32_t>{2, 3, 3, 0}));
  if (arch.attention.windows.listed)
    set("attention.sliding_window_pattern", gguf::Array(std::vector<std::uint32_t>{0, 1}));
  if (with_experts) {
    set("expert_count", std::uint32_t{4});
    set("expert_used_count", std::uint32_t{2});
    set("expert_feed_forward_length", std::uint32_t{48});
    set("expert_shared_count", std::uint32_t{1});
  }
  return metadata;
}

/// Keys and tensors, as reading and listing them for an example shows.
struct Contents {
  std::set<std::string> keys;
  std::map<std::string, WeightUse> tensors;  ///< with N for the layer's number
};

std::string without_layer(std::string_view name) {
  const std::size_t begin = name.find("blk.");
  if (begin == std::string_view::npos) return std::string(name);
  const std::size_t number = begin + 4;
  return fmt::format("{}N{}", name.substr(0, number), name.substr(name.find('.', number)));
}

void add_contents(const Architecture& arch, bool with_experts, Contents& contents) {
  const Hparams hparams = read_hparams(example_metadata(arch, with_experts), 160, &contents.keys);
  ModelWeights weights;
  for (const WeightSpec& spec : list_weights(hparams, weights)) {
    if (spec.use == WeightUse::unsupported) continue;
    const WeightUse use = spec.replaced_by.empty() ? spec.use : WeightUse::optional;
    const auto [found, is_new] = contents.tensors.emplace(without_layer(spec.name), use);
    if (!is_new && found->second != use) found->second = WeightUse::optional;
  }
}

std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
  return text;
}

std::string contents_of(const Architecture& arch) {
  Contents contents;
  add_contents(arch, false, contents);
  if (arch.experts.available) add_contents(arch, true, contents);
  std::vector<std::string> required, optional;
  for (const auto& [name, use] : contents.tensors) {
    if (use == WeightUse::required) required.push_back(name);
    if (use == WeightUse::optional) optional.push_back(name);
  }
  std::string text = fmt::format("\nKeys, after `{}.`: {}\n", arch.name,
                                 quoted({contents.keys.begin(), contents.keys.end()}));
  text += fmt::format("\nTensors: {}\n", quoted(required));
  if (!optional.empty()) text += fmt::format("\nTensors that some files have: {}\n", quoted(optional));
  return text;
}

}  // namespace

std::string family_page(const ArchitectureFamily& family) {
  std::string text = fmt::format(
      "<!-- Written by `quipu architectures --markdown`; changes belong into its table. -->\n# {}\n",
      family.title);
  for (const Architecture& arch : family.architectures) {
    text += fmt::format("\n## {}\n\n{}\n\n", arch.name, arch.paper);
    const std::pair<std::string_view, std::string> rows[] = {
        {"structure", structure_of(arch)}, {"norms", norms_of(arch)},
        {"attention", attention_of(arch)}, {"feed-forward", feed_forward_of(arch)},
        {"experts", experts_of(arch)},     {"head", head_of(arch)},
    };
    for (const auto& [part, description] : rows) {
      if (!description.empty()) text += fmt::format("- {}: {}\n", part, description);
    }
    text += contents_of(arch);
  }
  return text;
}

std::string families_page() {
  std::string text =
      "<!-- Written by `quipu architectures --markdown`. -->\n# Architectures\n\nValues of "
      "`general.architecture` that "
      "run, by family.\n\n";
  for (const ArchitectureFamily& family : architecture_families()) {
    std::vector<std::string> names;
    for (const Architecture& arch : family.architectures) names.emplace_back(arch.name);
    text += fmt::format("- [{}]({}.md): {}\n", family.title, family.name, quoted(names));
  }
  return text;
}

}  // namespace quipu
