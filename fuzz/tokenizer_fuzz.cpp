// Any vocabulary and any text: loading refuses the vocabulary with an Error, or every text has tokens and
// every token a piece, the same each time, and untrusted text has no control tokens. Anything else (a crash,
// another exception, a hang, an internal error) is a find.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "quipu/error.h"
#include "quipu/log.h"
#include "vocab/pre_tokenizer.h"
#include "vocab/vocab.h"

namespace {

using quipu::Error;
using quipu::ErrorCode;
using quipu::Token;
using quipu::TokenAttribute;
using quipu::Vocab;
using quipu::gguf::Array;
using quipu::gguf::Metadata;

constexpr const char* kModels[] = {"llama", "gpt2", "gemma4", "bert", "t5", "rwkv", "plamo2", "none", "x"};
constexpr const char* kFlags[] = {"add_bos_token",        "add_eos_token",
                                  "add_sep_token",        "add_space_prefix",
                                  "escape_whitespaces",   "remove_extra_whitespaces",
                                  "normalizer.lowercase", "treat_whitespace_as_suffix"};
constexpr const char* kRoles[] = {"bos_token_id", "eos_token_id", "unknown_token_id", "seperator_token_id",
                                  "padding_token_id"};
constexpr const char* kTexts[] = {"<|end|>", "<|call|>", "<|return|>", "</s>", "<|im_end|>", "<|message|>"};

Metadata make_vocabulary(FuzzedDataProvider& data) {
  Metadata metadata("fuzz");
  const auto key = [](const char* name) { return std::string("tokenizer.ggml.") + name; };
  metadata.set(key("model"), std::string(data.PickValueInArray(kModels)));
  const auto& rows = quipu::vocab::pre_tokenizers();
  const auto& row = rows[data.ConsumeIntegralInRange<std::size_t>(0, rows.size() - 1)];
  if (data.ConsumeBool()) metadata.set(key("pre"), std::string(row.names[0]));

  std::vector<std::string> texts;
  std::vector<std::int32_t> types;
  std::vector<float> scores;
  const auto add = [&](std::string text, std::int32_t type) {
    texts.push_back(std::move(text));
    types.push_back(type);
    scores.push_back(data.ConsumeFloatingPointInRange<float>(-1000, 10));
  };
  if (data.ConsumeBool()) {
    constexpr const char* kDigits = "0123456789ABCDEF";
    for (int byte = 0; byte < 256; ++byte) {
      texts.push_back(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">");
      types.push_back(6);
      scores.push_back(0);
    }
  }
  for (int i = data.ConsumeIntegralInRange(0, 40); i > 0; --i) {
    std::string text = data.ConsumeBool() ? data.ConsumeRandomLengthString(8) : data.PickValueInArray(kTexts);
    if (data.ConsumeBool()) text.insert(0, "\xE2\x96\x81");
    add(std::move(text), data.ConsumeIntegralInRange(0, 7));
  }
  std::vector<std::string> merges;
  for (int i = data.ConsumeIntegralInRange(0, 20); i > 0; --i) {
    merges.push_back(data.ConsumeRandomLengthString(6) + " " + data.ConsumeRandomLengthString(6));
  }
  metadata.set(key("tokens"), Array(std::move(texts)));
  if (data.ConsumeBool()) metadata.set(key("scores"), Array(std::move(scores)));
  if (data.ConsumeBool()) metadata.set(key("token_type"), Array(std::move(types)));
  metadata.set(key("merges"), Array(std::move(merges)));
  for (const char* flag : kFlags) {
    if (data.ConsumeBool()) metadata.set(key(flag), data.ConsumeBool());
  }
  for (const char* role : kRoles) {
    if (data.ConsumeBool()) metadata.set(key(role), data.ConsumeIntegral<std::uint32_t>() % 300);
  }
  if (data.ConsumeBool()) {
    const std::string blob = data.ConsumeRandomLengthString(600);
    metadata.set(key("precompiled_charsmap"), Array(std::vector<std::uint8_t>(blob.begin(), blob.end())));
  }
  return metadata;
}

void use(const Vocab& vocab, const std::vector<bool>& control, const std::string& text) {
  for (const bool special : {false, true}) {
    const std::vector<Token> tokens = vocab.tokenize(text, special, special);
    if (vocab.tokenize(text, special, special) != tokens) std::abort();
    std::size_t n_bytes = 0;
    for (const Token token : tokens) n_bytes += vocab.piece(token, special).size();
    if (vocab.detokenize(tokens, special, special).size() > n_bytes) std::abort();
  }
  for (const Token token : vocab.tokenize_untrusted(text, false)) {
    if (control[static_cast<std::size_t>(token)]) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  quipu::set_log_sink([](quipu::LogLevel, std::string_view) {});
  FuzzedDataProvider data(bytes, size);
  try {
    const Metadata metadata = make_vocabulary(data);
    const Vocab vocab = Vocab::load(metadata);
    if (vocab.type() == quipu::VocabType::none) return 0;
    // The unknown token stands for what has no token, whatever its type.
    std::vector<bool> control(vocab.size(), false);
    if (const auto types = metadata.get_i32s("tokenizer.ggml.token_type")) {
      for (std::size_t i = 0; i < control.size(); ++i) {
        control[i] = (*types)[i] == 3 && static_cast<Token>(i) != vocab.special().unknown;
      }
    }
    use(vocab, control, data.ConsumeRemainingBytesAsString());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) std::abort();
  }
  return 0;
}
