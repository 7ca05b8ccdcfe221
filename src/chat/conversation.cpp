#include "chat/conversation.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "chat/jinja/json.h"
#include "quipu/error.h"

namespace quipu::chat {

namespace {

using jinja::Budget;
using jinja::Dict;
using jinja::Limits;
using jinja::Sequence;
using jinja::Text;
using jinja::Value;

/// What we make ourselves is not the template's to pay for.
Budget unlimited() {
  Limits limits;
  limits.steps = limits.memory = std::numeric_limits<std::uint64_t>::max() / 4;
  return Budget(limits);
}

Value with(const Value& message, std::string_view key, Value value) {
  Budget budget = unlimited();
  Dict dict = *message.as_dict();
  dict.set(budget, Value::text(key), std::move(value));
  return make_dict(std::move(dict));
}

Value list(std::vector<Value> items) {
  Budget budget = unlimited();
  return make_sequence(budget, std::move(items));
}

bool has_role(const Value& message, std::string_view role) {
  const Value* value = message.as_dict()->find("role");
  return value != nullptr && value->as_text() != nullptr && jinja::equal(*value->as_text(), role);
}

/// The texts of parts, one behind the other; nothing if there is a part of another kind.
std::optional<Text> text_of_parts(const Sequence& parts) {
  Text result;
  for (const Value& part : parts.items) {
    const Dict* dict = part.as_dict();
    const Value* text = dict == nullptr ? nullptr : dict->find("text");
    if (text == nullptr || text->as_text() == nullptr) return std::nullopt;
    result += *text->as_text();
  }
  return result;
}

Value as_parts(const Value& text) {
  Budget budget = unlimited();
  Dict part;
  part.set(budget, Value::text("type"), Value::text("text"));
  part.set(budget, Value::text("text"), text);
  return list({make_dict(std::move(part))});
}

Value adapted_content(const Value& content, const Abilities& abilities) {
  if (content.is_none() && !abilities.null_content) return Value::text(Text());
  if (content.as_text() != nullptr && !abilities.text && abilities.parts) return as_parts(content);
  const Sequence* parts = content.as_list();
  if (parts != nullptr && !abilities.parts) {
    if (std::optional<Text> text = text_of_parts(*parts)) return Value::text(*std::move(text));
  }
  return content;
}

/// A call with its arguments as a dictionary where they are the JSON text of one.
Value adapted_call(const Value& call) {
  if (call.as_dict() == nullptr) return call;
  const Value* function = call.as_dict()->find("function");
  if (function != nullptr && function->as_dict() != nullptr)
    return with(call, "function", adapted_call(*function));
  const Value* arguments = call.as_dict()->find("arguments");
  if (arguments == nullptr || arguments->as_text() == nullptr) return call;
  try {
    const Value object = jinja::parse_json(jinja::bytes_of(*arguments->as_text()), "arguments");
    if (object.as_dict() != nullptr) return with(call, "arguments", object);
  } catch (const Error&) {  // a model wrote it: it may be anything
  }
  return call;
}

Value adapted_message(Value message, const Abilities& abilities) {
  if (has_role(message, "developer") && !abilities.developer)
    message = with(message, "role", Value::text("system"));
  if (const Value* content = message.as_dict()->find("content")) {
    message = with(message, "content", adapted_content(*content, abilities));
  }
  const Value* calls = message.as_dict()->find("tool_calls");
  if (calls != nullptr && calls->as_list() != nullptr && abilities.object_arguments) {
    std::vector<Value> items;
    for (const Value& call : calls->as_list()->items) items.push_back(adapted_call(call));
    message = with(message, "tool_calls", list(std::move(items)));
  }
  return message;
}

Text content_text(const Value& message) {
  const Value* content = message.as_dict()->find("content");
  if (content == nullptr) return {};
  if (content->as_text() != nullptr) return *content->as_text();
  const Sequence* parts = content->as_list();
  return parts == nullptr ? Text() : text_of_parts(*parts).value_or(Text());
}

/// For templates without a system role: its message goes in front of the user's first.
void merge_system(std::vector<Value>& messages) {
  if (messages.empty() || !has_role(messages.front(), "system")) return;
  const auto user =
      std::ranges::find_if(messages, [](const Value& message) { return has_role(message, "user"); });
  if (user == messages.end()) return;
  Text text = content_text(messages.front());
  text += U"\n\n";
  text += content_text(*user);
  *user = with(*user, "content", Value::text(std::move(text)));
  messages.erase(messages.begin());
}

}  // namespace

Value make_message(std::string_view role, Value content) {
  Budget budget = unlimited();
  Dict message;
  message.set(budget, Value::text("role"), Value::text(role));
  message.set(budget, Value::text("content"), std::move(content));
  return make_dict(std::move(message));
}

Conversation adapted(const Conversation& conversation, const Abilities& abilities) {
  Conversation result = conversation;
  if (!abilities.system) merge_system(result.messages);
  for (Value& message : result.messages) message = adapted_message(std::move(message), abilities);
  return result;
}

}  // namespace quipu::chat
