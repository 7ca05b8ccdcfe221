// A model's chat template, made fit for whatever conversation comes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/conversation.h"
#include "chat/jinja/template.h"
#include "gguf/metadata.h"
#include "vocab/vocab.h"

namespace quipu::chat {

/// The text of a template and where it is from, for messages.
struct TemplateSource {
  std::string text;
  std::string origin;
};
/// The template of a file: the one named (`tokenizer.chat_template.NAME`), or the one without a name. Where
/// the file has none, one that suits its vocabulary: ChatML where it has those tokens, else plain lines of
/// "Role: text". Error(invalid_argument) for a name that the file does not have.
TemplateSource template_of(const gguf::Metadata& metadata, const Vocab& vocab, std::string_view name);

class ChatTemplate {
 public:
  /// Error(bad_file) with line and column for text that is no template. Tries the template on small
  /// conversations to see what it can take.
  ChatTemplate(TemplateSource source, Vocab vocab);

  const std::string& source() const { return source_.text; }
  const std::string& origin() const { return source_.origin; }
  const Abilities& abilities() const { return abilities_; }

  /// Error(invalid_argument) with line and column, and the template's own words where it refuses.
  jinja::MarkedBytes apply(const Conversation& conversation) const;
  /// The prompt's tokens. What was input forms no control tokens. The beginning token is there once if the
  /// model wants it, whether the template writes it or not.
  std::vector<Token> tokenize(const jinja::MarkedBytes& prompt) const;

 private:
  jinja::MarkedBytes render(const Conversation& conversation, const jinja::Limits& limits = {}) const;
  Abilities find_abilities() const;

  TemplateSource source_;
  Vocab vocab_;
  std::string bos_, eos_;  // their texts; empty where there are none
  jinja::Template template_;
  Abilities abilities_;
};

}  // namespace quipu::chat
