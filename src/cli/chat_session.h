// A conversation and the context that holds as much of it as was computed.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/generate.h"
#include "quipu/chat.h"
#include "quipu/context.h"

namespace quipu::cli {

class ChatSession {
 public:
  /// These outlive the session; the context holds nothing yet.
  ChatSession(Context& context, const ChatTemplate& chat_template, const SamplingOptions& sampling,
              const GenerateOptions& options);

  const std::string& system() const { return system_; }
  /// Empty: none.
  void set_system(std::string text) { system_ = std::move(text); }
  SamplingOptions& sampling() { return sampling_; }
  /// Of the next answer; each has the next number.
  std::uint64_t seed() const { return seed_; }
  void set_seed(std::uint64_t seed) { seed_ = seed; }
  /// Without the system's.
  const std::vector<ChatMessage>& messages() const { return messages_; }

  /// Answers what the user says; `on_text` receives the answer as it comes. If the conversation is refused it
  /// is as before. What an interrupted answer has so far is kept.
  StopReason say(std::string text, const std::function<void(const std::string&)>& on_text);
  /// Another answer in place of the last. False if there is none.
  bool answer_again(const std::function<void(const std::string&)>& on_text, StopReason& stop);
  /// Forgets the last thing that the user said, and the answer. False if there is none.
  bool undo();
  void clear();
  /// How many of the oldest messages the last answer did without, since the context has no room for them.
  std::size_t n_left_out() const { return n_left_out_; }

  /// The conversation as JSON, and beside it (".state") what the context computed. Error(io).
  void save(const std::filesystem::path& path) const;
  /// Error(io) or Error(bad_file); the conversation is then as before. A state that is missing or of another
  /// model is computed again with the next answer.
  void load(const std::filesystem::path& path);

 private:
  std::vector<Token> prompt_tokens();
  StopReason answer(const std::function<void(const std::string&)>& on_text);
  std::size_t keep_common_part(const std::vector<Token>& prompt);

  Context& context_;
  const ChatTemplate& template_;
  SamplingOptions sampling_;
  GenerateOptions options_;
  std::uint64_t seed_;  // of the next answer
  std::string system_;
  std::vector<ChatMessage> messages_;
  std::vector<Token> in_memory_;  // what the context holds
  std::size_t n_left_out_ = 0;
};

}  // namespace quipu::cli
