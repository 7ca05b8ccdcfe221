#include "cli/peer.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string_view>

#include "cli/json.h"
#include "quipu/error.h"

namespace quipu::cli {

namespace {

constexpr std::size_t kMostOutput = 1 << 20;

/// As one word of a shell's.
std::string shell_word(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

std::string filled_in(std::string command, const std::string& model, const Configuration& configuration) {
  const std::array<std::pair<std::string_view, std::string>, 5> values = {{
      {"{model}", shell_word(model)},
      {"{prompt}", fmt::format("{}", configuration.n_prompt)},
      {"{gen}", fmt::format("{}", configuration.n_generate)},
      {"{depth}", fmt::format("{}", configuration.depth)},
      {"{threads}", fmt::format("{}", configuration.threads)},
  }};
  for (const auto& [name, value] : values) {
    for (std::size_t at = 0; (at = command.find(name, at)) != std::string::npos; at += value.size())
      command.replace(at, name.size(), value);
  }
  return command;
}

/// What the command prints. Error if it does not end well.
std::string output_of(const std::string& command) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  if (!pipe) throw Error(ErrorCode::io, fmt::format("bench: cannot run '{}'", command));
  std::string output;
  std::array<char, 4096> buffer;
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) > 0;) {
    if (output.size() < kMostOutput) output.append(buffer.data(), n);
  }
  if (const int status = ::pclose(pipe.release()); status != 0) {
    throw Error(ErrorCode::io, fmt::format("bench: '{}' failed (status {})", command, status));
  }
  return output;
}

std::optional<Json> last_object(std::string_view output) {
  while (!output.empty()) {
    const std::size_t end = output.find_last_not_of('\n');
    if (end == std::string_view::npos) break;
    const std::size_t before = output.rfind('\n', end);
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    Json value = Json::parse(output.substr(begin, end + 1 - begin), nullptr, false);
    if (value.is_object()) return value;
    output = output.substr(0, begin);
  }
  return std::nullopt;
}

std::optional<double> figure(const Json& object, const std::string& name, const std::string& short_name) {
  for (const std::string& key : {name, short_name}) {
    const auto found = object.find(key);
    if (found != object.end() && found->is_number()) return found->get<double>();
  }
  return std::nullopt;
}

}  // namespace

PeerFigures run_peer(const std::string& command, const std::string& model,
                     const Configuration& configuration) {
  const std::string filled = filled_in(command, model, configuration);
  const std::optional<Json> object = last_object(output_of(filled));
  if (!object) {
    throw Error(ErrorCode::invalid_argument, fmt::format("bench: '{}' prints no JSON object", filled));
  }
  return {figure(*object, "prompt_tps", fmt::format("pp{}", configuration.n_prompt)),
          figure(*object, "generation_tps", fmt::format("tg{}", configuration.n_generate))};
}

}  // namespace quipu::cli
