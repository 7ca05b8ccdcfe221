// What files may say about a vocabulary, right and wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "quipu/error.h"
#include "vocab/tiny_vocab.h"

namespace quipu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The error that loading gives; "" if it gives none.
std::string load_error(const gguf::Metadata& metadata, ErrorCode code = ErrorCode::bad_file) {
  try {
    Vocab::load(metadata);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.message();
  }
  return "";
}

// Everything that a program does first with a vocabulary.
void use(const Vocab& vocab) {
  for (const bool special : {false, true}) {
    const std::vector<Token> tokens = vocab.tokenize("hello </s>\n\xFF", special, special);
    for (const Token token : tokens) {
      vocab.piece(token, true);
      vocab.is_end(token);
    }
    vocab.detokenize(tokens, special, special);
  }
}

TEST(VocabLoad, UnknownTokenizerIsRefusedByName) {
  const gguf::Metadata metadata = tiny_metadata("magic9", {{"a"}});
  EXPECT_THAT(load_error(metadata, ErrorCode::unsupported), HasSubstr("'magic9'"));
}

TEST(VocabLoad, UnknownPreTokenizerIsRefusedByName) {
  EXPECT_THAT(load_error(tiny_bpe("magic-pre", {}), ErrorCode::unsupported), HasSubstr("'magic-pre'"));
}

TEST(VocabLoad, AFileWithoutTokenizerKeysNamesTheMissingKey) {
  EXPECT_THAT(load_error(gguf::Metadata("x.gguf")),
              HasSubstr("x.gguf: key 'tokenizer.ggml.model' is missing"));
  gguf::Metadata no_tokens("x.gguf");
  no_tokens.set("tokenizer.ggml.model", std::string("llama"));
  EXPECT_THAT(load_error(no_tokens), HasSubstr("'tokenizer.ggml.tokens' is missing"));
}

TEST(VocabLoad, BpeWithoutMergesIsRefused) {
  const gguf::Metadata metadata = tiny_metadata("gpt2", {{"a"}});
  EXPECT_THAT(load_error(metadata), HasSubstr("'tokenizer.ggml.merges' is missing"));
}

TEST(VocabLoad, AnEmptyTokenArrayIsRefused) {
  EXPECT_THAT(load_error(tiny_metadata("llama", {})), HasSubstr("'tokenizer.ggml.tokens' is an empty array"));
}

TEST(VocabLoad, ShortArraysAreRefused) {
  gguf::Metadata scores = tiny_spm({});
  scores.set("tokenizer.ggml.scores", gguf::Array(std::vector<float>(258)));
  EXPECT_THAT(load_error(scores), HasSubstr("'tokenizer.ggml.scores' has 258 elements for 259 tokens"));
  gguf::Metadata types = tiny_spm({});
  types.set("tokenizer.ggml.token_type", gguf::Array(std::vector<std::int32_t>(1)));
  EXPECT_THAT(load_error(types), HasSubstr("'tokenizer.ggml.token_type' has 1 elements for 259 tokens"));
}

TEST(VocabLoad, ArraysOfAnotherKindAreRefused) {
  for (const char* key : {"tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type"}) {
    gguf::Metadata scalar = tiny_spm({});
    scalar.set(key, std::uint32_t{7});
    EXPECT_THAT(load_error(scalar), HasSubstr(key));
  }
  gguf::Metadata numbers = tiny_spm({});
  numbers.set("tokenizer.ggml.tokens", gguf::Array(std::vector<std::uint8_t>(259)));
  EXPECT_THAT(load_error(numbers), HasSubstr("tokenizer.ggml.tokens"));
  gguf::Metadata merges = tiny_bpe("gpt-2", {});
  merges.set("tokenizer.ggml.merges", gguf::Array(std::vector<float>(3)));
  EXPECT_THAT(load_error(merges), HasSubstr("tokenizer.ggml.merges"));
}

TEST(VocabLoad, NarrowElementTypesAreReadAsNumbers) {
  gguf::Metadata metadata = tiny_spm({{"ab"}, {"bc"}});
  std::vector<std::uint8_t> scores(261);
  scores[260] = 9;
  std::vector<std::uint8_t> types(261, 1);
  metadata.set("tokenizer.ggml.scores", gguf::Array(scores));
  metadata.set("tokenizer.ggml.token_type", gguf::Array(types));
  const Vocab vocab = Vocab::load(metadata);
  EXPECT_EQ(vocab.score(260), 9.0f);
  EXPECT_EQ(vocab.attributes(0), TokenAttribute::normal);
}

TEST(VocabLoad, AScoreThatIsNoNumberIsRefused) {
  const gguf::Metadata metadata = tiny_spm({{"a", TokenType::normal, std::nanf("")}});
  EXPECT_THAT(load_error(metadata), HasSubstr("'tokenizer.ggml.scores': element 259"));
}

TEST(VocabLoad, ImpliedRolesOutsideATinyVocabularyAreOff) {
  const Vocab vocab = Vocab::load(tiny_metadata("llama", {{"a"}, {"b"}}));
  EXPECT_EQ(vocab.special().bos, 1);
  EXPECT_EQ(vocab.special().eos, kNoToken);
  use(vocab);
}

TEST(VocabLoad, RolesOutsideTheVocabularyAreOff) {
  const std::vector<gguf::Value> values = {std::uint32_t{0xFFFFFFFF}, std::uint32_t{259}, std::int32_t{-1},
                                           std::uint64_t{1} << 32, ~std::uint64_t{0}};
  for (const char* key : {"bos", "eos", "unknown", "padding", "separator", "eot", "fim_pre"}) {
    for (const gguf::Value& value : values) {
      gguf::Metadata metadata = tiny_spm({});
      metadata.set(std::string("tokenizer.ggml.") + key + "_token_id", value);
      use(Vocab::load(metadata));
    }
  }
  gguf::Metadata metadata = tiny_spm({});
  metadata.set("tokenizer.ggml.bos_token_id", std::uint32_t{259});
  const Vocab vocab = Vocab::load(metadata);
  EXPECT_EQ(vocab.special().bos, kNoToken);
  EXPECT_FALSE(vocab.add_bos());
}

TEST(VocabLoad, AnIdThatIsNoNumberIsRefused) {
  gguf::Metadata metadata = tiny_spm({});
  metadata.set("tokenizer.ggml.eos_token_id", std::string("two"));
  EXPECT_THAT(load_error(metadata), HasSubstr("tokenizer.ggml.eos_token_id"));
}

TEST(VocabLoad, MergesMayNameTextsThatAreNoTokens) {
  // "ab" is no token, but on the way to "abc".
  const Vocab vocab = Vocab::load(tiny_bpe("gpt-2", {"a b", "ab c", "x y"}, {{"abc"}}));
  EXPECT_THAT(pieces_of(vocab, "abc"), ElementsAre("abc"));
  EXPECT_THAT(pieces_of(vocab, "abxy"), ElementsAre("a", "b", "x", "y"));
}

TEST(VocabLoad, BrokenMergesAreLeftOut) {
  const Vocab vocab =
      Vocab::load(tiny_bpe("gpt-2", {"", " ", "ab", "a ", " b", "a b c", "\xFF\xFF z", "a b"}, {{"ab"}}));
  EXPECT_THAT(pieces_of(vocab, "ab"), ElementsAre("ab"));
}

TEST(VocabLoad, TheFirstOfEqualTokensIsUsed) {
  const Vocab vocab = Vocab::load(tiny_bpe("gpt-2", {"a b"}, {{"ab"}, {"ab"}}));
  EXPECT_THAT(vocab.tokenize("ab", false, false), ElementsAre(256));
  EXPECT_EQ(vocab.piece(257, false), "ab");
}

TEST(VocabLoad, EmptyTokensGetAText) {
  const Vocab vocab = Vocab::load(tiny_spm({{""}, {"", TokenType::control}}));
  EXPECT_EQ(vocab.text(259), "[EMPTY_259]");
  EXPECT_THAT(vocab.tokenize("[EMPTY_260]", false, true), ElementsAre(260));
  use(vocab);
}

TEST(VocabLoad, TokensMayHoldNulAndInvalidBytes) {
  const std::string nul("\0", 1);
  const Vocab spm =
      Vocab::load(tiny_spm({{nul}, {"\xFF\xFE", TokenType::user_defined}, {"<0xZZ>", TokenType::byte}}));
  EXPECT_EQ(spm.piece(259, false), nul);
  EXPECT_THAT(spm.tokenize("\xFF\xFE", false, false), ElementsAre(260));
  use(spm);
  use(Vocab::load(tiny_bpe("gpt-2", {}, {{nul}, {"\xFF\xFE"}, {"a b"}})));
}

TEST(VocabLoad, AddFlagsOfTheFileWin) {
  gguf::Metadata metadata = tiny_spm({});
  EXPECT_TRUE(Vocab::load(metadata).add_bos());
  EXPECT_FALSE(Vocab::load(metadata).add_eos());
  metadata.set("tokenizer.ggml.add_bos_token", false);
  metadata.set("tokenizer.ggml.add_eos_token", true);
  const Vocab vocab = Vocab::load(metadata);
  EXPECT_THAT(vocab.tokenize("", true, false), ElementsAre(2));
}

TEST(VocabLoad, LlamaThreeAddsABeginningUnlessTheFileSaysNo) {
  gguf::Metadata metadata = tiny_bpe("llama-bpe", {});
  EXPECT_FALSE(Vocab::load(metadata).add_bos());
  for (const char* name : {"llama-bpe", "llama3", "llama-v3"}) {
    gguf::Metadata named = tiny_metadata("gpt2", {{"a"}, {"b"}});
    named.set("tokenizer.ggml.pre", std::string(name));
    named.set("tokenizer.ggml.merges", gguf::Array(std::vector<std::string>()));
    named.set("tokenizer.ggml.bos_token_id", std::uint32_t{1});
    EXPECT_THAT(Vocab::load(named).tokenize("a", true, false), ElementsAre(1, 0)) << name;
  }
}

TEST(VocabLoad, RolesAreRecognizedByText) {
  const Vocab vocab = Vocab::load(
      tiny_bpe("qwen2", {}, {{"<|endoftext|>"}, {"<|im_end|>"}, {"<|fim_prefix|>"}, {"<|file_sep|>"}}));
  EXPECT_EQ(vocab.special().eot, 257);
  EXPECT_EQ(vocab.special().fim_prefix, 258);
  EXPECT_THAT(vocab.end_tokens(), ElementsAre(0, 256, 257, 259));
  EXPECT_TRUE(vocab.is_end(257));
  EXPECT_FALSE(vocab.is_end(258));
  EXPECT_FALSE(vocab.is_end(kNoToken));
  EXPECT_EQ(vocab.attributes(257), TokenAttribute::normal | TokenAttribute::control);
}

TEST(VocabLoad, RolesOfTheFileWinOverTexts) {
  gguf::Metadata metadata = tiny_bpe("qwen2", {}, {{"<|im_end|>"}, {"<stop>"}});
  metadata.set("tokenizer.ggml.eot_token_id", std::uint32_t{257});
  EXPECT_EQ(Vocab::load(metadata).special().eot, 257);
}

TEST(VocabLoad, AModelWithoutTokenizerHasASizeAndNoTexts) {
  gguf::Metadata metadata("bare.gguf");
  metadata.set("general.architecture", std::string("llama"));
  metadata.set("llama.vocab_size", std::uint32_t{320});
  metadata.set("tokenizer.ggml.model", std::string("no_vocab"));
  const Vocab vocab = Vocab::load(metadata);
  EXPECT_EQ(vocab.type(), VocabType::none);
  EXPECT_EQ(vocab.size(), 320u);
  EXPECT_EQ(vocab.special().eos, kNoToken);
  EXPECT_TRUE(vocab.end_tokens().empty());
  const std::vector<std::function<void()>> texts = {[&] { vocab.tokenize("a", true, true); },
                                                    [&] { vocab.piece(1, true); },
                                                    [&] { vocab.text(1); },
                                                    [&] { vocab.detokenize({}, true, true); },
                                                    [&] { vocab.find("a"); },
                                                    [&] { vocab.score(1); },
                                                    [&] { vocab.attributes(1); }};
  for (const auto& call : texts) {
    try {
      call();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_THAT(error.message(), HasSubstr("bare.gguf: the model has no tokenizer"));
    }
  }
}

}  // namespace
}  // namespace quipu
