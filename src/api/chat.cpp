#include "quipu/chat.h"

#include "api/access.h"
#include "api/guard.h"
#include "base/error.h"
#include "chat/chat_template.h"
#include "chat/jinja/json.h"
#include "chat/stop_texts.h"
#include "model/model.h"

namespace quipu {

namespace {

using jinja::Value;

/// The members of a JSON object; none for an empty text.
std::vector<jinja::Dict::Entry> members_of(const std::string& json, std::string_view what) {
  if (json.empty()) return {};
  const Value value = jinja::parse_json(json, what);
  if (value.as_dict() == nullptr) fail(ErrorCode::invalid_argument, "{} is no JSON object", what);
  return value.as_dict()->entries();
}

Value to_inner(const ChatMessage& message) {
  const Value plain = chat::make_message(message.role, Value::text(jinja::from_utf8(message.content, true)));
  jinja::Budget budget{jinja::Limits{}};
  jinja::Dict dict = *plain.as_dict();
  for (const auto& [key, value] : members_of(message.members, "the further members of a message")) {
    dict.set(budget, key, value);
  }
  return make_dict(std::move(dict));
}

chat::Conversation to_inner(const ChatInput& input) {
  chat::Conversation result;
  for (const ChatMessage& message : input.messages) result.messages.push_back(to_inner(message));
  if (!input.tools.empty()) result.tools = jinja::parse_json(input.tools, "the list of tools");
  for (const auto& [key, value] : members_of(input.variables, "the variables of the template")) {
    result.variables.emplace_back(jinja::bytes_of(*key.as_text()), value);
  }
  result.add_generation_prompt = input.add_generation_prompt;
  return result;
}

}  // namespace

ChatTemplate ChatTemplate::of(const Model& model, std::string_view name) {
  return guarded([&] {
    const auto loaded = ApiAccess::loaded(model);
    chat::TemplateSource source = chat::template_of(loaded->metadata(), loaded->vocab(), name);
    return ChatTemplate(std::make_shared<const chat::ChatTemplate>(std::move(source), loaded->vocab()));
  });
}

ChatTemplate ChatTemplate::from_text(std::string_view text, const Tokenizer& tokenizer,
                                     std::string_view origin) {
  return guarded([&] {
    chat::TemplateSource source{std::string(text), std::string(origin)};
    return ChatTemplate(
        std::make_shared<const chat::ChatTemplate>(std::move(source), ApiAccess::vocab(tokenizer)));
  });
}

std::string ChatTemplate::source() const {
  return inner_->source();
}
std::string ChatTemplate::origin() const {
  return inner_->origin();
}

ChatPrompt ChatTemplate::apply(const ChatInput& input) const {
  return guarded([&] {
    jinja::MarkedBytes prompt = inner_->apply(to_inner(input));
    return ChatPrompt{std::move(prompt.bytes), std::move(prompt.input)};
  });
}

std::vector<Token> ChatTemplate::tokenize(const ChatPrompt& prompt) const {
  return guarded([&] { return inner_->tokenize({prompt.text, prompt.input}); });
}

StopTexts::StopTexts(std::vector<std::string> texts)
    : inner_(guarded([&] { return std::make_unique<chat::StopTexts>(std::move(texts)); })) {}
StopTexts::StopTexts(StopTexts&&) noexcept = default;
StopTexts& StopTexts::operator=(StopTexts&&) noexcept = default;
StopTexts::~StopTexts() = default;

std::string StopTexts::add(std::string_view piece) {
  return guarded([&] { return inner_->add(piece); });
}
bool StopTexts::found() const noexcept {
  return inner_->found();
}
std::string StopTexts::finish() {
  return guarded([&] { return inner_->finish(); });
}

}  // namespace quipu
