// Conversations: from messages to a prompt, by the model's own chat template.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quipu/model.h"
#include "quipu/tokenizer.h"
#include "quipu/types.h"

namespace quipu {

namespace chat {
class ChatTemplate;
class StopTexts;
}  // namespace chat

/// What somebody said.
struct ChatMessage {
  std::string role;  ///< "system", "user", "assistant", "tool" ...
  std::string content;
  /// Further members as a JSON object in the form of the Chat Completions API, which take the place of those
  /// above:
  /// `{"tool_calls": [...]}`, `{"content": null}`, `{"content": [{"type": "text", "text": "..."}]}`,
  /// `{"reasoning_content": "..."}`. Empty: none.
  std::string members = {};
};

struct ChatInput {
  std::vector<ChatMessage> messages;
  std::string tools = {};  ///< a JSON array of tools that the model may call; empty: none
  std::string variables =
      {};  ///< a JSON object of what else the template knows: `{"enable_thinking": false}`
  bool add_generation_prompt = true;  ///< end where the assistant begins to speak
};

/// The text of a prompt, and which of it came from the input and not from the template.
struct ChatPrompt {
  std::string text;
  std::vector<ByteRange> input;  ///< ascending, apart from each other
};

/// A shared handle: cheap to copy, immutable, used by any number of threads at once.
///
/// A template is a small program in a file that may come from anywhere: what it can use of time and memory is
/// limited.
class ChatTemplate {
 public:
  /// The template of the model's file, `tokenizer.chat_template`, or the one of this name among those that it
  /// has. A file without one gets a usual one; origin() says which. Error(bad_file) with line and column for
  /// what is no template, Error(invalid_argument) for a name that is not there.
  static ChatTemplate of(const Model& model, std::string_view name = {});
  /// Any other, for the vocabulary of a model. `origin` is for messages.
  static ChatTemplate from_text(std::string_view text, const Tokenizer& tokenizer,
                                std::string_view origin = "template");

  std::string source() const;
  std::string origin() const;

  /// Messages are given to the template in a form that it takes: text parts in one string, the system's
  /// message in front of the user's where there is no such role, and so on. Error(invalid_argument) for JSON
  /// that is none, and, with line and column, for conversations that the template refuses.
  ChatPrompt apply(const ChatInput& input) const;
  /// The tokens of a prompt, with the model's beginning token once. Control tokens are those that the
  /// template wrote; written out in the input they are plain text.
  std::vector<Token> tokenize(const ChatPrompt& prompt) const;

 private:
  explicit ChatTemplate(std::shared_ptr<const chat::ChatTemplate> inner) : inner_(std::move(inner)) {}
  std::shared_ptr<const chat::ChatTemplate> inner_;
};

/// Texts that end an answer. They may come in several pieces: what could become one is held back until it is
/// sure.
class StopTexts {
 public:
  explicit StopTexts(std::vector<std::string> texts);
  StopTexts(StopTexts&&) noexcept;
  StopTexts& operator=(StopTexts&&) noexcept;
  ~StopTexts();

  /// The text that is sure to come before any stop text.
  std::string add(std::string_view piece);
  bool found() const noexcept;
  /// What was held back, at the end of an answer that no stop text ended.
  std::string finish();

 private:
  std::unique_ptr<chat::StopTexts> inner_;
};

}  // namespace quipu
