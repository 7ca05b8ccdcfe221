#include "cli/chat_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "cli/json.h"
#include "quipu/error.h"

namespace quipu::cli {

namespace {

std::filesystem::path state_path(const std::filesystem::path& path) {
  return path.string() + ".state";
}

std::vector<ChatMessage> messages_of(const Json& file) {
  std::vector<ChatMessage> messages;
  for (const Json& message : file.at("messages")) {
    messages.push_back({message.at("role").get<std::string>(), message.at("content").get<std::string>()});
  }
  return messages;
}

}  // namespace

ChatSession::ChatSession(Context& context, const ChatTemplate& chat_template, const SamplingOptions& sampling,
                         const GenerateOptions& options)
    : context_(context),
      template_(chat_template),
      sampling_(sampling),
      options_(options),
      seed_(sampling.seed.value_or(std::random_device{}())) {}

/// Of as many of the newest messages as leave room for an answer.
std::vector<Token> ChatSession::prompt_tokens() {
  const std::size_t room = context_.n_ctx_per_sequence() - context_.n_ctx_per_sequence() / 8;
  for (n_left_out_ = 0;;) {
    ChatInput input;
    if (!system_.empty()) input.messages.push_back({"system", system_});
    const auto first = messages_.begin() + static_cast<std::ptrdiff_t>(n_left_out_);
    input.messages.insert(input.messages.end(), first, messages_.end());
    std::vector<Token> tokens = template_.tokenize(template_.apply(input));
    if (tokens.size() <= room) return tokens;
    // Turns go in pairs, since many templates want them to begin with the user's.
    const auto next = std::find_if(first + 1, messages_.end(),
                                   [](const ChatMessage& message) { return message.role == "user"; });
    if (next == messages_.end()) return tokens;
    n_left_out_ = static_cast<std::size_t>(next - messages_.begin());
  }
}

/// Makes the context hold a beginning of the prompt and nothing else; returns how long that is.
std::size_t ChatSession::keep_common_part(const std::vector<Token>& prompt) {
  const auto [in_prompt, in_memory] =
      std::mismatch(prompt.begin(), prompt.end(), in_memory_.begin(), in_memory_.end());
  auto n = static_cast<std::size_t>(in_prompt - prompt.begin());
  if (n == prompt.size() && n > 0) --n;  // the last one is computed for its logits
  if (!context_.remove(0, static_cast<Position>(n), -1)) {
    context_.clear();
    n = 0;
  }
  in_memory_.resize(n);
  return n;
}

StopReason ChatSession::answer(const std::function<void(const std::string&)>& on_text) {
  const std::vector<Token> prompt = prompt_tokens();
  GenerateOptions options = options_;
  options.n_kept = keep_common_part(prompt);
  SamplingOptions sampling = sampling_;
  sampling.seed = seed_++;
  Sampler sampler(sampling, context_.model().tokenizer());
  std::string text;
  in_memory_.clear();  // what is there after an error is not known
  const Generation generation = generate(context_, sampler, prompt, options, [&](const std::string& piece) {
    text += piece;
    on_text(piece);
  });
  in_memory_ = prompt;
  in_memory_.insert(in_memory_.end(), generation.tokens.begin(), generation.tokens.end());
  in_memory_.resize(std::min(in_memory_.size(), static_cast<std::size_t>(context_.max_position(0) + 1)));
  messages_.push_back({"assistant", text});
  return generation.stop;
}

StopReason ChatSession::say(std::string text, const std::function<void(const std::string&)>& on_text) {
  messages_.push_back({"user", std::move(text)});
  try {
    return answer(on_text);
  } catch (const Error&) {
    messages_.pop_back();
    throw;
  }
}

bool ChatSession::answer_again(const std::function<void(const std::string&)>& on_text, StopReason& stop) {
  if (messages_.empty() || messages_.back().role != "assistant") return false;
  const ChatMessage before = messages_.back();
  messages_.pop_back();
  try {
    stop = answer(on_text);
  } catch (const Error&) {
    messages_.push_back(before);
    throw;
  }
  return true;
}

bool ChatSession::undo() {
  const auto last = std::find_if(messages_.rbegin(), messages_.rend(),
                                 [](const ChatMessage& message) { return message.role == "user"; });
  if (last == messages_.rend()) return false;
  messages_.erase(last.base() - 1, messages_.end());
  return true;
}

void ChatSession::clear() {
  messages_.clear();
}

void ChatSession::save(const std::filesystem::path& path) const {
  Json file;
  file["model"] = context_.model().name();
  file["template"] = template_.origin();
  file["system"] = system_;
  file["messages"] = Json::array();
  for (const ChatMessage& message : messages_) {
    file["messages"].push_back({{"role", message.role}, {"content", message.content}});
  }
  std::ofstream out(path, std::ios::binary);
  out << dump(file) << '\n';
  if (!out.flush()) throw Error(ErrorCode::io, fmt::format("{}: cannot be written", path.string()));
  context_.save_file(state_path(path), {.tokens = in_memory_});
}

void ChatSession::load(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorCode::io, fmt::format("{}: cannot be read", path.string()));
  try {
    const Json file = Json::parse(in);
    std::vector<ChatMessage> messages = messages_of(file);
    system_ = file.at("system").get<std::string>();
    messages_ = std::move(messages);
  } catch (const Json::exception&) {
    throw Error(ErrorCode::bad_file, fmt::format("{}: is no saved conversation", path.string()));
  }
  context_.clear();
  in_memory_.clear();
  try {
    in_memory_ = context_.load_file(state_path(path));
  } catch (const Error&) {
    context_.clear();
  }
}

}  // namespace quipu::cli
