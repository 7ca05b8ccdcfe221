#include "chat/chat_template.h"

#include <optional>

#include "base/error.h"
#include "chat/jinja/json.h"

namespace quipu::chat {

namespace {

using jinja::Text;
using jinja::Value;

constexpr std::string_view kKey = "tokenizer.chat_template";

constexpr std::string_view kChatMl =
    R"({% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{% endfor %})"
    R"({% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";
constexpr std::string_view kPlain =
    R"({% for message in messages %}{{ message.role | capitalize + ': ' + message.content + '\n' }}{% endfor %})"
    R"({% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %})";

std::string text_of(const Vocab& vocab, Token token) {
  if (token == kNoToken || vocab.type() == VocabType::none) return {};
  return std::string(vocab.piece(token, true));
}

/// Roles choose what the template writes; ordinary ones count as its own words.
Value with_plain_role(const Value& message) {
  const Value* role = message.as_dict()->find("role");
  const Text* text = role == nullptr ? nullptr : role->as_text();
  constexpr std::size_t kLongest = 32;
  if (text == nullptr || text->size() > kLongest) return message;
  std::string word;
  for (const jinja::Char c : *text) {
    const jinja::Char p = jinja::plain(c);
    const bool letter = (p >= 'a' && p <= 'z') || (p >= 'A' && p <= 'Z') || p == '_' || p == '-';
    if (!letter) return message;
    word.push_back(static_cast<char>(p));
  }
  jinja::Budget budget{jinja::Limits{}};
  jinja::Dict dict = *message.as_dict();
  dict.set(budget, Value::text("role"), Value::text(word));
  return make_dict(std::move(dict));
}

}  // namespace

TemplateSource template_of(const gguf::Metadata& metadata, const Vocab& vocab, std::string_view name) {
  const std::string key = name.empty() ? std::string(kKey) : fmt::format("{}.{}", kKey, name);
  if (const std::string* text = metadata.get_string(key)) return {*text, key};
  if (!name.empty())
    fail(ErrorCode::invalid_argument, "{}: there is no chat template '{}'", metadata.origin(), name);
  if (vocab.type() != VocabType::none && vocab.find("<|im_start|>") != kNoToken) {
    return {std::string(kChatMl), "ChatML (the file has no chat template)"};
  }
  return {std::string(kPlain), "plain text (the file has no chat template)"};
}

ChatTemplate::ChatTemplate(TemplateSource source, Vocab vocab)
    : source_(std::move(source)),
      vocab_(std::move(vocab)),
      bos_(text_of(vocab_, vocab_.special().bos)),
      eos_(text_of(vocab_, vocab_.special().eos)),
      template_(source_.text, source_.origin),
      abilities_(find_abilities()) {}

jinja::MarkedBytes ChatTemplate::render(const Conversation& conversation, const jinja::Limits& limits) const {
  jinja::Budget budget{jinja::Limits{}};
  jinja::Variables variables = conversation.variables;
  std::vector<Value> messages;
  for (const Value& message : conversation.messages) messages.push_back(with_plain_role(message));
  variables.emplace_back("messages", make_sequence(budget, std::move(messages)));
  // Without tools the name stays undefined, which templates take for their absence no less than none.
  if (!conversation.tools.is_none()) variables.emplace_back("tools", conversation.tools);
  variables.emplace_back("add_generation_prompt", Value::boolean(conversation.add_generation_prompt));
  variables.emplace_back("bos_token", Value::text(jinja::from_utf8(bos_)));
  variables.emplace_back("eos_token", Value::text(jinja::from_utf8(eos_)));
  return template_.render(variables, jinja::system_clock(), limits);
}

/// Small conversations that differ in one thing only: what a template makes of them shows whether it takes
/// it.
Abilities ChatTemplate::find_abilities() const {
  constexpr std::string_view kWord = "needle";
  const jinja::Limits limits{.steps = 1'000'000, .memory = 32'000'000};
  const auto rendered = [&](std::vector<Value> messages) -> std::optional<std::string> {
    try {
      return render({.messages = std::move(messages), .tools = {}, .variables = {}}, limits).bytes;
    } catch (const Error&) {
      return std::nullopt;
    }
  };
  const auto shows = [&](const std::optional<std::string>& text) {
    return text && text->find(kWord) != std::string::npos;
  };
  const auto json = [](std::string_view text) { return jinja::parse_json(text, "probe"); };
  const Value user = make_message("user", json(R"("needle")"));

  Abilities result;
  const auto as_text = rendered({user});
  const auto as_parts = rendered({make_message("user", json(R"([{"type":"text","text":"needle"}])"))});
  result.text = shows(as_text) || !shows(as_parts);
  result.parts = shows(as_parts) && (as_text == as_parts || !shows(as_text));
  const Value hello = make_message("user", json(R"("hello")"));
  const auto with_system = rendered({make_message("system", json(R"("needle")")), hello});
  result.system = shows(with_system) || !rendered({hello});
  const auto call = [&](std::string_view content, std::string_view arguments) {
    return rendered(
        {hello, json(fmt::format(R"({{"role":"assistant","content":{},"tool_calls":[{{"id":"call12345",)"
                                 R"("type":"function","function":{{"name":"f","arguments":{}}}}}]}})",
                                 content, arguments))});
  };
  const auto with_object = call(R"("")", R"({"needle":1})"),
             with_string = call(R"("")", R"("{\"needle\":1}")");
  result.object_arguments = shows(with_object) || !shows(with_string);
  const std::string_view form = result.object_arguments ? R"({"needle":1})" : R"("{\"needle\":1}")";
  const auto with_null = call("null", form);
  result.null_content = with_null && with_null->find("None") == std::string::npos;
  result.developer = source_.text.find("developer") != std::string::npos;
  return result;
}

jinja::MarkedBytes ChatTemplate::apply(const Conversation& conversation) const {
  return render(adapted(conversation, abilities_));
}

std::vector<Token> ChatTemplate::tokenize(const jinja::MarkedBytes& prompt) const {
  std::vector<Token> tokens = vocab_.tokenize_prompt(prompt.bytes, prompt.input);
  const Token bos = vocab_.special().bos;
  if (vocab_.add_bos() && (tokens.empty() || tokens.front() != bos)) tokens.insert(tokens.begin(), bos);
  return tokens;
}

}  // namespace quipu::chat
