#include "chat/jinja/template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "chat/jinja/parser.h"
#include "chat/jinja/token.h"
#include "vocab/utf8.h"

namespace quipu::jinja {

namespace {

/// Line breaks of all kinds become "\n"; one at the end goes.
std::string normalized(std::string_view source) {
  std::string result;
  result.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    result.push_back(source[i] == '\r' ? '\n' : source[i]);
  }
  if (result.ends_with('\n')) result.pop_back();
  return result;
}

std::size_t size_of(const Value& value) {
  if (const Text* text = value.as_text()) return text->size();
  std::size_t size = 1;
  if (const Sequence* sequence = value.as_sequence()) {
    for (const Value& item : sequence->items) size += size_of(item);
  } else if (const Dict* dict = value.as_dict()) {
    for (const auto& [key, item] : dict->entries()) size += size_of(key) + size_of(item);
  }
  return size;
}

}  // namespace

Template::Template(std::string_view source, std::string name) : name_(std::move(name)) {
  if (source.size() > kMaxTemplateBytes) {
    fail(ErrorCode::bad_file, "{}: a template of {} bytes is too long", name_, source.size());
  }
  source_ = normalized(source);
  try {
    program_ = std::make_shared<const Program>(parse(source_));
  } catch (const SyntaxError& error) {
    throw Error(ErrorCode::bad_file, located(error.at, error.message));
  }
}

std::string Template::located(std::uint32_t at, std::string_view message) const {
  const std::string_view before = std::string_view(source_).substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_begin = before.rfind('\n') + 1;  // 0 if there is none
  const auto column = std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line_begin), before.end(),
                                    [](char c) { return !vocab::is_continuation(c); }) +
                      1;
  return fmt::format("{}, line {}, column {}: {}", name_, line, column, message);
}

MarkedBytes Template::render(const Variables& variables, const Clock& clock, const Limits& limits) const {
  Budget budget(limits);
  for (const auto& [name, value] : variables) budget.add_input(size_of(value));
  Interpreter interpreter(*program_, variables, clock, budget);
  try {
    return to_utf8(interpreter.run());
  } catch (const Error& error) {
    throw Error(error.code(), located(interpreter.at(), error.message()));
  }
}

Clock system_clock() {
  return [](const std::string& format) {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    std::array<char, 4096> buffer;
    const std::size_t n = std::strftime(buffer.data(), buffer.size(), format.c_str(), &local);
    return std::string(buffer.data(), n);
  };
}

}  // namespace quipu::jinja
