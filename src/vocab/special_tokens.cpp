// The texts below are facts about published models. Their order matters: the first that a vocabulary has is
// taken.
#include "vocab/special_tokens.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <span>
#include <string>

#include "base/log.h"

namespace quipu::vocab {

namespace {

using Role = Token SpecialTokens::*;

struct RoleKey {
  std::string_view key;  // after "tokenizer.ggml."
  Role role;
};
constexpr std::array kRoleKeys = std::to_array<RoleKey>({
    {"bos_token_id", &SpecialTokens::bos},
    {"eos_token_id", &SpecialTokens::eos},
    {"eot_token_id", &SpecialTokens::eot},
    {"eom_token_id", &SpecialTokens::eom},
    {"unknown_token_id", &SpecialTokens::unknown},
    {"separator_token_id", &SpecialTokens::separator},
    {"seperator_token_id", &SpecialTokens::separator},  // as the format spells it
    {"padding_token_id", &SpecialTokens::padding},
    {"mask_token_id", &SpecialTokens::mask},
    // Older names first, so that the newer win.
    {"prefix_token_id", &SpecialTokens::fim_prefix},
    {"suffix_token_id", &SpecialTokens::fim_suffix},
    {"middle_token_id", &SpecialTokens::fim_middle},
    {"fim_pre_token_id", &SpecialTokens::fim_prefix},
    {"fim_suf_token_id", &SpecialTokens::fim_suffix},
    {"fim_mid_token_id", &SpecialTokens::fim_middle},
    {"fim_pad_token_id", &SpecialTokens::fim_padding},
    {"fim_rep_token_id", &SpecialTokens::fim_repository},
    {"fim_sep_token_id", &SpecialTokens::fim_separator},
});

struct WellKnown {
  Role role;
  std::span<const std::string_view> texts;
};
constexpr auto kEotTexts = std::to_array<std::string_view>(
    {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>",
     "_<EOT>", "[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>"});
constexpr auto kEomTexts = std::to_array<std::string_view>({"<|eom_id|>"});
constexpr auto kPrefixTexts =
    std::to_array<std::string_view>({"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>",
                                     "<PRE>", "▁<PRE>", "<|code_prefix|>", "<|prefix|>"});
constexpr auto kSuffixTexts =
    std::to_array<std::string_view>({"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>",
                                     "<SUF>", "▁<SUF>", "<|code_suffix|>", "<|suffix|>"});
constexpr auto kMiddleTexts =
    std::to_array<std::string_view>({"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>",
                                     "<MID>", "▁<MID>", "<|code_middle|>", "<|middle|>"});
constexpr auto kPaddingTexts =
    std::to_array<std::string_view>({"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"});
constexpr auto kRepositoryTexts =
    std::to_array<std::string_view>({"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"});
constexpr auto kSeparatorTexts = std::to_array<std::string_view>({"<|file_sep|>"});
constexpr std::array kWellKnown = std::to_array<WellKnown>({
    {&SpecialTokens::eot, kEotTexts},
    {&SpecialTokens::eom, kEomTexts},
    {&SpecialTokens::fim_prefix, kPrefixTexts},
    {&SpecialTokens::fim_suffix, kSuffixTexts},
    {&SpecialTokens::fim_middle, kMiddleTexts},
    {&SpecialTokens::fim_padding, kPaddingTexts},
    {&SpecialTokens::fim_repository, kRepositoryTexts},
    {&SpecialTokens::fim_separator, kSeparatorTexts},
});

constexpr auto kEndTexts = std::to_array<std::string_view>({"<|eot_id|>",
                                                            "<|im_end|>",
                                                            "<|end|>",
                                                            "<|return|>",
                                                            "<|call|>",
                                                            "<|flush|>",
                                                            "<|calls|>",
                                                            "<end_of_turn>",
                                                            "<|endoftext|>",
                                                            "</s>",
                                                            "<|eom_id|>",
                                                            "<EOT>",
                                                            "_<EOT>",
                                                            "[EOT]",
                                                            "[EOS]",
                                                            "<|end_of_text|>",
                                                            "<end_of_utterance>",
                                                            "<eos>",
                                                            "<turn|>",
                                                            "<|tool_response>",
                                                            "<｜end▁of▁sentence｜>",
                                                            "[e~["});
// Parts of a message's frame that are to be shown like text.
constexpr auto kShownTexts =
    std::to_array<std::string_view>({"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"});

TokenAttributes& attributes_of(TokenTable& tokens, Token token) {
  return tokens.attributes[static_cast<std::size_t>(token)];
}

void make_control(TokenTable& tokens, Token token) {
  TokenAttributes& attributes = attributes_of(tokens, token);
  if (attributes.any(TokenAttribute::control)) return;
  log_info("token {} '{}' is treated as a control token because of its text", token, tokens.texts[token]);
  attributes = attributes | TokenAttribute::control;
}

// Whether the string under `key` holds one of `parts`, in whatever case.
bool holds_any(const gguf::Metadata& metadata, const char* key, std::initializer_list<const char*> parts) {
  const std::string* const value = metadata.get_string(key);
  if (value == nullptr) return false;
  std::string lower = *value;
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return std::ranges::any_of(parts, [&](const char* part) { return lower.find(part) != std::string::npos; });
}

void set_attribute(TokenTable& tokens, std::string_view text, TokenAttribute attribute, bool on) {
  const Token token = tokens.texts.find(text);
  if (token == kNoToken) return;
  TokenAttributes& attributes = attributes_of(tokens, token);
  attributes = on ? attributes | attribute : attributes.without(attribute);
}

// Families in which <|end|> ends a message, not the answer: known by the tokens that end an answer there.
bool end_is_of_a_message(const TokenTable& tokens) {
  const auto has = [&](std::string_view text) { return tokens.texts.find(text) != kNoToken; };
  return has("<|end|>") && (has("<|call|>") || has("<|calls|>")) && (has("<|return|>") || has("<|flush|>"));
}

}  // namespace

SpecialTokens read_special_tokens(const gguf::Metadata& metadata, const SpecialTokens& defaults,
                                  std::int32_t n_tokens) {
  SpecialTokens special = defaults;
  for (const RoleKey& entry : kRoleKeys) {
    Token& token = special.*entry.role;
    if (token >= n_tokens) token = kNoToken;
    const std::string key = "tokenizer.ggml." + std::string(entry.key);
    const gguf::Value* const value = metadata.find(key);
    if (value == nullptr) continue;
    const auto* const wide = std::get_if<std::uint64_t>(value);  // may exceed what get_i64 can give
    const std::int64_t id = wide != nullptr && *wide > INT64_MAX ? -1 : *metadata.get_i64(key);
    token = id >= 0 && id < n_tokens ? static_cast<Token>(id) : kNoToken;
    if (token == kNoToken) {
      log_warning("{}: key '{}': {} is outside the vocabulary of {} tokens and is ignored", metadata.origin(),
                  key, id, n_tokens);
    }
  }
  return special;
}

void recognize_special_tokens(TokenTable& tokens, SpecialTokens& special) {
  const bool not_a_turn = end_is_of_a_message(tokens);
  for (const WellKnown& well_known : kWellKnown) {
    Token& token = special.*well_known.role;
    if (token != kNoToken) continue;
    for (const std::string_view text : well_known.texts) {
      if (token == kNoToken && !(not_a_turn && text == "<|end|>")) token = tokens.texts.find(text);
    }
    if (token != kNoToken) make_control(tokens, token);
  }
  for (Token token = 0; token < tokens.texts.size(); ++token) {
    TokenAttributes& attributes = attributes_of(tokens, token);
    if (attributes.any(TokenAttribute::control) &&
        tokens.texts[token].find("unused") != std::string_view::npos) {
      attributes = attributes | TokenAttribute::unused;
    }
  }
}

std::vector<Token> find_end_tokens(TokenTable& tokens, const SpecialTokens& special) {
  std::set<Token> ends = {special.fim_padding,   special.fim_repository,
                          special.fim_separator, special.eos,
                          special.eot,           special.eom};
  ends.erase(kNoToken);
  for (const std::string_view text : kEndTexts) {
    const Token token = tokens.texts.find(text);
    if (token == kNoToken) continue;
    ends.insert(token);
    make_control(tokens, token);
  }
  for (const std::string_view text : kShownTexts) {
    const Token token = tokens.texts.find(text);
    if (token != kNoToken) attributes_of(tokens, token) = TokenAttribute::user_defined;
  }

  const auto ends_with = [&](std::string_view text) { return ends.contains(tokens.texts.find(text)); };
  if (end_is_of_a_message(tokens)) {
    const Token end = tokens.texts.find("<|end|>");
    ends.erase(end);
    attributes_of(tokens, end) = TokenAttribute::user_defined;
  }
  if (ends_with("<|tool_response>") && ends_with("</s>")) {
    // Here </s> is the closing tag of strikethrough.
    const Token tag = tokens.texts.find("</s>");
    ends.erase(tag);
    attributes_of(tokens, tag) = TokenAttribute::normal;
  }
  return {ends.begin(), ends.end()};
}

void apply_model_rules(const gguf::Metadata& metadata, TokenTable& tokens) {
  if (holds_any(metadata, "tokenizer.ggml.pre", {"jina-v2-de", "jina-v2-es", "jina-v2-code"}) ||
      holds_any(metadata, "general.architecture", {"nomic-bert-moe", "jina-bert-v3"})) {
    set_attribute(tokens, "<mask>", TokenAttribute::lstrip, true);
  } else if (holds_any(metadata, "general.name", {"phi-3", "phi3"})) {
    for (TokenAttributes& attributes : tokens.attributes) {
      if (is_special(attributes)) attributes = attributes | TokenAttribute::rstrip;
    }
    set_attribute(tokens, "</s>", TokenAttribute::rstrip, true);
    for (const char* text : {"<unk>", "<s>", "<|endoftext|>"}) {
      set_attribute(tokens, text, TokenAttribute::rstrip, false);
    }
  } else if (holds_any(metadata, "general.name", {"modern-bert"})) {
    set_attribute(tokens, "[MASK]", TokenAttribute::lstrip, true);
  }
}

bool is_special(TokenAttributes attributes) {
  return attributes.any(TokenAttribute::control | TokenAttribute::user_defined | TokenAttribute::unknown);
}

}  // namespace quipu::vocab
