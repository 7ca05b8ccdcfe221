// Renders a template in one call, as most tests want it.
#pragma once

#include <string>
#include <string_view>

#include "chat/jinja/json.h"
#include "chat/jinja/template.h"
#include "quipu/error.h"

namespace quipu::jinja {

/// `variables` is a JSON object; its strings count as input.
inline MarkedBytes render(std::string_view source, std::string_view variables = "{}",
                          const Limits& limits = {}) {
  const Value object = parse_json(variables, "variables");
  Variables list;
  for (const auto& [name, value] : object.as_dict()->entries())
    list.emplace_back(bytes_of(*name.as_text()), value);
  return Template(source, "template")
      .render(
          list, [](const std::string& format) { return format; }, limits);
}

/// The message of the error that it ends with; empty if there was none.
inline std::string fault_of(std::string_view source, std::string_view variables = "{}",
                            const Limits& limits = {}) {
  try {
    render(source, variables, limits);
  } catch (const Error& error) {
    return error.message();
  }
  return {};
}

}  // namespace quipu::jinja
