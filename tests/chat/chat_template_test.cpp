// Templates of models on conversations of every form, and tokens of which the user's text can make no control
// tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chat/chat_template.h"
#include "chat/jinja/json.h"
#include "chat/stop_texts.h"
#include "quipu/error.h"

namespace quipu::chat {
namespace {

using testing::HasSubstr;

/// A vocabulary of bytes and a few control tokens: ids 0 <unk>, 1 <s>, 2 </s>, 3 <|im_start|>, 4 <|im_end|>,
/// 5 + byte.
gguf::Metadata metadata(bool add_bos) {
  gguf::Metadata result;
  std::vector<std::string> texts = {"<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"};
  std::vector<std::int32_t> types = {2, 3, 3, 3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    texts.push_back(fmt::format("<0x{:02X}>", byte));
    types.push_back(6);
  }
  result.set("tokenizer.ggml.model", std::string("llama"));
  result.set("tokenizer.ggml.tokens", gguf::Array(texts));
  result.set("tokenizer.ggml.scores", gguf::Array(std::vector<float>(texts.size(), 0.0f)));
  result.set("tokenizer.ggml.token_type", gguf::Array(types));
  result.set("tokenizer.ggml.bos_token_id", std::uint32_t{1});
  result.set("tokenizer.ggml.eos_token_id", std::uint32_t{2});
  result.set("tokenizer.ggml.add_bos_token", add_bos);
  result.set("tokenizer.ggml.add_space_prefix", false);
  return result;
}

Conversation conversation(std::string_view messages) {
  Conversation result;
  const jinja::Value list = jinja::parse_json(messages, "messages");
  result.messages = list.as_list()->items;
  return result;
}

std::string applied(std::string_view source, std::string_view messages) {
  const ChatTemplate compiled({std::string(source), "template"}, Vocab::load(metadata(true)));
  return compiled.apply(conversation(messages)).bytes;
}

constexpr std::string_view kPrintsContent =
    "{% for m in messages %}{{ m.role + ':' + m.content + ';' }}{% endfor %}";
constexpr std::string_view kPrintsParts =
    "{% for m in messages %}{{ m.role }}:{% for p in m.content %}{{ p.text }}{% endfor %};{% endfor %}";

TEST(ChatTemplate, GivesTextPartsAsOneStringToTemplatesOfStrings) {
  EXPECT_EQ(
      applied(kPrintsContent,
              R"([{"role":"user","content":[{"type":"text","text":"a "},{"type":"text","text":"b"}]}])"),
      "user:a b;");
}

TEST(ChatTemplate, GivesStringsAsPartsToTemplatesOfParts) {
  EXPECT_EQ(applied(kPrintsParts, R"([{"role":"user","content":"a"}])"), "user:a;");
}

TEST(ChatTemplate, GivesNoContentAsAnEmptyStringWhereNoneIsNotTaken) {
  EXPECT_EQ(applied(kPrintsContent, R"([{"role":"assistant","content":null,"tool_calls":[]}])"),
            "assistant:;");
}

TEST(ChatTemplate, PutsTheSystemsMessageInFrontOfTheUsersWhereThereIsNoSuchRole) {
  const std::string source = "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}" +
                             std::string(kPrintsContent);
  EXPECT_EQ(applied(source, R"([{"role":"system","content":"S"},{"role":"user","content":"u"}])"),
            "user:S\n\nu;");
}

TEST(ChatTemplate, GivesTheJsonOfArgumentsAsADictionaryWhereTheTemplateWantsOne) {
  const std::string source =
      std::string(kPrintsContent) +
      "{% for m in messages %}{% for c in m.tool_calls or [] %}{% for k, v in "
      "c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}{% endfor %}{% endfor %}";
  EXPECT_EQ(
      applied(source, R"([{"role":"assistant","content":"","tool_calls":[{"type":"function","function":)"
                      R"({"name":"f","arguments":"{\"city\":\"Lima\"}"}}]}])"),
      "assistant:;city=Lima");
}

TEST(ChatTemplate, PassesOnWhatTheTemplateRefuses) {
  try {
    applied("{% if messages|length > 1 %}{{ raise_exception('Too many') }}{% endif %}",
            R"([{"role":"user","content":"a"},{"role":"user","content":"b"}])");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(error.message(), "template, line 1, column 47: Too many");
  }
}

TEST(ChatTemplate, IsChatMlWhereTheFileHasNoneAndTheVocabularySuits) {
  const gguf::Metadata file = metadata(true);
  const Vocab vocab = Vocab::load(file);
  const TemplateSource source = template_of(file, vocab, "");
  EXPECT_THAT(source.origin, HasSubstr("ChatML"));
  EXPECT_EQ(ChatTemplate(source, vocab).apply(conversation(R"([{"role":"user","content":"a"}])")).bytes,
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_THROW(template_of(file, vocab, "tool_use"), Error);
}

std::vector<Token> tokens(bool add_bos, std::string_view source, std::string_view messages) {
  const ChatTemplate compiled({std::string(source), "template"}, Vocab::load(metadata(add_bos)));
  return compiled.tokenize(compiled.apply(conversation(messages)));
}

TEST(ChatTokens, OfUsersTextAreNoControlTokens) {
  const std::string_view source = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}";
  const std::vector<Token> plain = tokens(false, source, R"([{"role":"user","content":"<|im_end|>"}])");
  ASSERT_EQ(plain.size(), 12u);  // the ten characters between two control tokens
  EXPECT_EQ(plain.front(), 3);
  EXPECT_EQ(plain.back(), 4);
  EXPECT_EQ(plain[1], 5 + '<');
}

TEST(ChatTokens, AreNotMadeOfTheTemplatesTextAndTheUsersTogether) {
  const std::vector<Token> plain = tokens(false, "{% for m in messages %}<|im_{{ m.content }}{% endfor %}",
                                          R"([{"role":"user","content":"end|>"}])");
  EXPECT_EQ(plain.size(), 10u);
}

TEST(ChatTokens, BeginWithTheBeginningTokenOnce) {
  const std::string_view with = "{{ bos_token }}{{ messages[0].content }}",
                         without = "{{ messages[0].content }}";
  const std::string_view messages = R"([{"role":"user","content":"a"}])";
  for (const std::string_view source : {with, without}) {
    EXPECT_EQ(tokens(true, source, messages), (std::vector<Token>{1, 5 + 'a'})) << source;
  }
  EXPECT_EQ(tokens(false, without, messages), (std::vector<Token>{5 + 'a'}));
  EXPECT_EQ(tokens(true, without, R"([{"role":"user","content":"<s>"}])").size(), 4u);
}

TEST(StopTexts, AreFoundAcrossPieces) {
  StopTexts stops({"User:"});
  std::string shown;
  for (const std::string_view piece : {"Hi. Us", "Use", "r", ":", " more"}) shown += stops.add(piece);
  EXPECT_TRUE(stops.found());
  EXPECT_EQ(shown + stops.finish(), "Hi. Us");
}

TEST(StopTexts, HoldNothingBackForGood) {
  StopTexts stops({"User:", "END", ""});
  std::string shown = stops.add("a E");
  shown += stops.add("N User");
  EXPECT_EQ(shown, "a EN ");
  EXPECT_EQ(stops.finish(), "User");
  EXPECT_FALSE(stops.found());
}

}  // namespace
}  // namespace quipu::chat
