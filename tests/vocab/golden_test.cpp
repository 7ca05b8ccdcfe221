// The reference tokenizers: ids, texts, attributes and roles of real vocabularies. They are too large for the
// repository, so this runs where the folder with them stands beside it.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gguf/reader.h"
#include "vocab/vocab.h"

namespace quipu {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const fs::path kFolder = QUIPU_SOURCE_DIR "/../shared/golden/tokenizers";

json read_json(const fs::path& path) {
  std::ifstream file(path);
  return json::parse(file);
}

std::string from_base64(const std::string& text) {
  static const std::string kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0;
  int n_bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = (bits << 6 | static_cast<unsigned>(kDigits.find(c))) & 0xFFFFu;
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes.push_back(static_cast<char>(bits >> n_bits & 0xFFu));
  }
  return bytes;
}

struct Sample {
  std::string file;
  std::string name;
};

class GoldenTokenizer : public testing::TestWithParam<Sample> {
 protected:
  void SetUp() override {
    const fs::path file = kFolder / GetParam().file;
    if (!fs::exists(file)) GTEST_SKIP() << "no reference vocabulary at " << file;
    vocab_.emplace(Vocab::load(gguf::Reader::open(file).metadata()));
    expected_ = read_json(kFolder / (GetParam().name + ".tokens.json"));
    for (const json& entry : read_json(kFolder / "corpus.json")) {
      texts_[entry["name"]] =
          entry.contains("b64") ? from_base64(entry["b64"]) : entry["text"].get<std::string>();
    }
  }

  std::optional<Vocab> vocab_;
  json expected_;
  std::map<std::string, std::string> texts_;
};

TEST_P(GoldenTokenizer, TextsBecomeTheSameTokens) {
  struct Mode {
    const char* key;
    bool add_special, parse_special;
  };
  for (const auto& [name, result] : expected_["strings"].items()) {
    for (const Mode mode : {Mode{"10", true, false}, Mode{"11", true, true}, Mode{"00", false, false}}) {
      const std::vector<Token> tokens =
          vocab_->tokenize(texts_.at(name), mode.add_special, mode.parse_special);
      if (result.is_null() || result[mode.key].is_null())
        continue;  // refused there; here it must only not throw
      EXPECT_EQ(tokens, result[mode.key].get<std::vector<Token>>()) << name << " " << mode.key;
    }
  }
}

TEST_P(GoldenTokenizer, TokensBecomeTheSameText) {
  for (const auto& [name, result] : expected_["strings"].items()) {
    if (result.is_null() || result["11"].is_null()) continue;
    const auto tokens = result["11"].get<std::vector<Token>>();
    EXPECT_EQ(vocab_->detokenize(tokens, false, true), from_base64(result["detok"])) << name;
  }
}

TEST_P(GoldenTokenizer, PiecesAndAttributesAreTheSame) {
  for (const json& entry : expected_["pieces"]) {
    const Token token = entry[0];
    EXPECT_EQ(vocab_->piece(token, true), from_base64(entry[1])) << token;
    EXPECT_EQ(vocab_->attributes(token).bits(), entry[2].get<unsigned>()) << token;
  }
}

TEST_P(GoldenTokenizer, RolesAreTheSame) {
  const json& info = expected_["info"];
  const SpecialTokens& special = vocab_->special();
  EXPECT_EQ(static_cast<int>(vocab_->type()), info["type"]);
  EXPECT_EQ(vocab_->size(), info["n_tokens"]);
  const std::array<std::pair<const char*, Token>, 13> roles = {{{"bos", special.bos},
                                                                {"eos", special.eos},
                                                                {"eot", special.eot},
                                                                {"sep", special.separator},
                                                                {"nl", special.newline},
                                                                {"pad", special.padding},
                                                                {"mask", special.mask},
                                                                {"fim_pre", special.fim_prefix},
                                                                {"fim_suf", special.fim_suffix},
                                                                {"fim_mid", special.fim_middle},
                                                                {"fim_pad", special.fim_padding},
                                                                {"fim_rep", special.fim_repository},
                                                                {"fim_sep", special.fim_separator}}};
  for (const auto& [key, token] : roles) EXPECT_EQ(token, info[key]) << key;
  EXPECT_EQ(vocab_->add_bos(), info["add_bos"] == 1);
  EXPECT_EQ(vocab_->add_eos(), info["add_eos"] == 1);
  EXPECT_EQ(vocab_->add_separator(), info["add_sep"] == 1);
  const auto end = vocab_->end_tokens();
  EXPECT_EQ(std::vector<Token>(end.begin(), end.end()), info["eog"].get<std::vector<Token>>());
}

INSTANTIATE_TEST_SUITE_P(
    , GoldenTokenizer,
    testing::Values(
        Sample{"ggml-vocab-llama-spm.gguf", "llama-spm"}, Sample{"ggml-vocab-phi-3.gguf", "phi-3"},
        Sample{"ggml-vocab-baichuan.gguf", "baichuan"}, Sample{"ggml-vocab-bert-bge.gguf", "bert-bge"},
        Sample{"ggml-vocab-gpt-2.gguf", "gpt-2"}, Sample{"ggml-vocab-gpt-neox.gguf", "gpt-neox"},
        Sample{"ggml-vocab-falcon.gguf", "falcon"}, Sample{"ggml-vocab-starcoder.gguf", "starcoder"},
        Sample{"ggml-vocab-refact.gguf", "refact"}, Sample{"ggml-vocab-mpt.gguf", "mpt"},
        Sample{"ggml-vocab-deepseek-coder.gguf", "deepseek-coder"},
        Sample{"ggml-vocab-deepseek-llm.gguf", "deepseek-llm"}, Sample{"vocab-llama3.gguf", "llama3"},
        Sample{"vocab-qwen3.gguf", "qwen3"}, Sample{"vocab-gemma3.gguf", "gemma3"},
        Sample{"vocab-deepseek-v3.gguf", "deepseek-v3"}, Sample{"vocab-gptoss.gguf", "gptoss"}),
    [](const auto& test) {
      std::string name = test.param.name;
      std::erase(name, '-');
      return name;
    });

}  // namespace
}  // namespace quipu
