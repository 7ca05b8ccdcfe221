// Any bytes as a template and its input: up to the first NUL the template, behind it JSON for the variable
// `messages`. Whatever it is, it ends, soon, with a text or an Error.
#include <cstdint>
#include <string_view>

#include "chat/jinja/json.h"
#include "chat/jinja/template.h"
#include "quipu/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace quipu;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t end = bytes.find('\0');
  jinja::Limits limits;
  limits.steps = 200'000;  // sanitizers are slow
  limits.memory = 16'000'000;
  try {
    const jinja::Template compiled(bytes.substr(0, end), "template");
    jinja::Variables variables;
    if (end != std::string_view::npos) {
      variables.emplace_back("messages", jinja::parse_json(bytes.substr(end + 1), "messages", limits));
    }
    static_cast<void>(compiled.render(
        variables, [](const std::string& format) { return format; }, limits));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) __builtin_trap();
  }
  return 0;
}
