// Model files, models and metadata through the public interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "gguf/reader.h"
#include "gguf/writer.h"
#include "quipu/quipu.h"
#include "support/files.h"
#include "support/golden.h"

namespace quipu::test {
namespace {

using testing::HasSubstr;

const std::filesystem::path kMini = QUIPU_SOURCE_DIR "/models/quipu-mini.gguf";

std::string message_of(const std::function<void()>& action, ErrorCode code) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.message();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

/// The small model with one key set to another value.
std::filesystem::path mini_with(const TempDir& folder, const std::string& key, const gguf::Value& value) {
  const gguf::Reader reader = gguf::Reader::open(kMini);
  gguf::Metadata metadata = reader.metadata();
  metadata.set(key, value);
  std::vector<gguf::TensorToWrite> tensors;
  for (const gguf::TensorInfo& tensor : reader.tensors()) {
    tensors.push_back(gguf::tensor_in_memory(tensor.name, tensor.type, tensor.dims, reader.data(tensor)));
  }
  const std::filesystem::path path = folder / "changed.gguf";
  gguf::write_file(path, metadata, tensors);
  return path;
}

TEST(ModelFile, TheBuiltInOneEqualsTheFileInTheTree) {
  const ModelFile built_in = ModelFile::built_in(), file = ModelFile::open(kMini);
  EXPECT_EQ(built_in.file_bytes(), std::filesystem::file_size(kMini));
  EXPECT_EQ(built_in.n_params(), file.n_params());
  EXPECT_EQ(built_in.name(), "<built-in>");
  EXPECT_EQ(file.name(), kMini);
}

TEST(ModelFile, OutlivesNothingThatItsMetadataNeeds) {
  std::optional<Metadata> metadata;
  {
    const ModelFile file = ModelFile::open(kMini);
    metadata = file.metadata();
  }
  EXPECT_EQ(metadata->string("general.architecture"), "llama");
}

TEST(ModelFile, ArchitecturesThatCannotRunOpenAsWell) {
  const TempDir folder;
  const ModelFile file =
      ModelFile::open(mini_with(folder, "general.architecture", std::string("perceptron")));
  EXPECT_EQ(file.architecture(), "perceptron");
  EXPECT_FALSE(file.tensors().empty());
  EXPECT_THAT(message_of([&] { Model::load(folder / "changed.gguf"); }, ErrorCode::unsupported),
              HasSubstr("perceptron"));
}

TEST(ModelFile, AMissingFileIsNamed) {
  EXPECT_THAT(message_of([] { ModelFile::open("/no/such.gguf"); }, ErrorCode::io),
              HasSubstr("/no/such.gguf"));
}

TEST(Metadata, ValuesKeepTheirTypes) {
  const TempDir folder;
  gguf::Metadata metadata;
  metadata.set("u8", std::uint8_t{200});
  metadata.set("i16", std::int16_t{-5});
  metadata.set("f32", 0.5f);
  metadata.set("flag", true);
  metadata.set("text", std::string("words"));
  metadata.set("flags", gguf::Array(std::vector<gguf::Bool>{{true}, {false}}));
  metadata.set("numbers", gguf::Array(std::vector<std::int8_t>{-1, 2}));
  const std::filesystem::path path = folder / "keys.gguf";
  gguf::write_file(path, metadata, {});
  const Metadata keys = ModelFile::open(path).metadata();
  ASSERT_EQ(keys.size(), 7u);
  EXPECT_EQ(keys.value(0), MetadataValue(std::uint64_t{200}));
  EXPECT_EQ(keys.value(1), MetadataValue(std::int64_t{-5}));
  EXPECT_EQ(keys.value(2), MetadataValue(0.5f));
  EXPECT_EQ(keys.value(3), MetadataValue(true));
  EXPECT_EQ(keys.value(4), MetadataValue(std::string("words")));
  EXPECT_EQ(keys.value(5), MetadataValue(MetadataArray(std::vector<bool>{true, false})));
  EXPECT_EQ(keys.value(6), MetadataValue(MetadataArray(std::vector<std::int64_t>{-1, 2})));
  EXPECT_EQ(keys.type(6), "i8[]");
  EXPECT_EQ(keys.number("i16"), -5.0);
  EXPECT_EQ(keys.number("absent"), std::nullopt);
  EXPECT_EQ(keys.find("text"), 4u);
}

TEST(Metadata, AValueOfAnotherTypeIsAnErrorThatNamesTheKey) {
  const Metadata keys = ModelFile::built_in().metadata();
  EXPECT_THAT(message_of([&] { keys.number("general.name"); }, ErrorCode::bad_file),
              HasSubstr("'general.name'"));
  EXPECT_THAT(message_of([&] { keys.string("llama.block_count"); }, ErrorCode::bad_file),
              HasSubstr("'llama.block_count'"));
}

TEST(Metadata, AKeyNumberOutOfRangeIsAnError) {
  const Metadata keys = ModelFile::built_in().metadata();
  EXPECT_THROW(keys.key(keys.size()), Error);
}

TEST(Model, TellsItsFigures) {
  const Model model = Model::built_in();
  EXPECT_EQ(model.name(), "<built-in>");
  EXPECT_EQ(model.architecture(), "llama");
  EXPECT_EQ(model.n_vocab(), 1024u);
  EXPECT_EQ(model.n_ctx_train(), 1024u);
  EXPECT_EQ(model.n_embd(), 128u);
  EXPECT_EQ(model.n_layers(), 6u);
  EXPECT_EQ(model.n_params(), ModelFile::built_in().n_params());
  EXPECT_EQ(model.bytes(), ModelFile::built_in().tensor_bytes());
}

TEST(Model, ProgressRisesToOne) {
  std::vector<float> fractions;
  ModelOptions options;
  options.progress = [&](float fraction) {
    fractions.push_back(fraction);
    return true;
  };
  Model::load(kMini, options);
  ASSERT_FALSE(fractions.empty());
  EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
  EXPECT_EQ(fractions.back(), 1.0f);
}

TEST(Model, LoadingCanBeCancelled) {
  ModelOptions options;
  options.progress = [](float) { return false; };
  EXPECT_THAT(message_of([&] { Model::load(kMini, options); }, ErrorCode::invalid_argument),
              HasSubstr("cancel"));
}

TEST(Model, WithoutAMappingItIsTheSame) {
  ModelOptions options;
  options.use_mmap = false;
  const Model read = Model::load(kMini, options), mapped = Model::load(kMini);
  Context a(read), b(mapped);
  const std::vector<Token> tokens = read.tokenizer().tokenize("Once upon a time");
  ASSERT_EQ(a.decode(tokens), DecodeResult::ok);
  ASSERT_EQ(b.decode(tokens), DecodeResult::ok);
  EXPECT_TRUE(std::ranges::equal(a.logits(-1), b.logits(-1)));
}

TEST(Model, RecommendsTheSamplingOfItsFile) {
  const SamplingOptions options = Model::built_in().recommended_sampling();
  EXPECT_EQ(options.temp, 0.6f);
  EXPECT_EQ(options.top_k, 40);
  EXPECT_EQ(options.top_p, 0.95f);  // the file is silent about these
  EXPECT_EQ(options.min_p, 0.05f);
}

TEST(Model, ARecommendationThatIsNoNumberIsAnErrorThatNamesTheKey) {
  const TempDir folder;
  const std::filesystem::path path =
      mini_with(folder, "general.sampling.temp", std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(message_of([&] { Model::load(path).recommended_sampling(); }, ErrorCode::bad_file),
              HasSubstr("'general.sampling.temp'"));
}

TEST(Model, WithoutAVocabularyRunsButHasNoText) {
  const TempDir folder;
  write_golden_model(folder / "m.gguf", load_golden("llama"));
  const Model model = Model::load(folder / "m.gguf");
  EXPECT_FALSE(model.tokenizer().has_text());
  EXPECT_EQ(model.tokenizer().size(), model.n_vocab());
  EXPECT_THROW(model.tokenizer().tokenize("text"), Error);
  Context context(model);
  EXPECT_EQ(context.decode(std::vector<Token>{1, 2, 3}), DecodeResult::ok);
}

}  // namespace
}  // namespace quipu::test
