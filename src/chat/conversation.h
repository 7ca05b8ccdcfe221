// A conversation as chat templates take it, in the form of the Chat Completions API, and what is done to it
// for templates that cannot take all of that form.
#pragma once

#include "chat/jinja/interpreter.h"
#include "chat/jinja/value.h"

namespace quipu::chat {

struct Conversation {
  std::vector<jinja::Value> messages;  ///< dictionaries
  jinja::Value tools;                  ///< a list, or none
  jinja::Variables variables;          ///< further ones
  bool add_generation_prompt = true;
};

/// What a template can take.
struct Abilities {
  bool text = true;              ///< content as a string
  bool parts = true;             ///< content as a list of parts
  bool null_content = true;      ///< content none, as of messages that only call tools
  bool system = true;            ///< a message of the system
  bool object_arguments = true;  ///< a call's arguments as a dictionary
  bool developer = true;         ///< mentions that role
};

/// A message with a role the template wrote, and content from outside.
jinja::Value make_message(std::string_view role, jinja::Value content);

/// The conversation in a form that the template takes: text parts become one string or the other way round,
/// null content becomes an empty string, the system's message goes in front of the first one of the user,
/// arguments that are JSON text become dictionaries.
Conversation adapted(const Conversation& conversation, const Abilities& abilities);

}  // namespace quipu::chat
