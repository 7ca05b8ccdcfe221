#include "chat/jinja/strings.h"

#include "chat/jinja/operators.h"

namespace quipu::jinja {

Text replaced(Interpreter& vm, TextView text, TextView old, TextView fresh, std::int64_t count) {
  Text result;
  pay_for_search(vm.budget(), text.size(), old.size());
  std::size_t at = 0;
  for (std::size_t from = 0; count != 0; --count) {
    const std::size_t found = find(text, old, from);
    if (found == TextView::npos) break;
    vm.budget().text(found - at + fresh.size());
    result.append(text.substr(at, found - at));
    result.append(fresh);
    at = found + old.size();
    from = old.empty() ? at + 1 : at;
  }
  result.append(text.substr(at));
  return result;
}

Text justified(Interpreter& vm, TextView text, std::int64_t width, Char fill, bool right, bool center) {
  const auto size = static_cast<std::int64_t>(text.size());
  if (width <= size) return Text(text);
  vm.budget().text(static_cast<std::uint64_t>(width));
  const std::int64_t missing = width - size;
  const std::int64_t before = center ? missing / 2 + (missing & width & 1) : right ? missing : 0;
  Text result(static_cast<std::size_t>(before), fill);
  result.append(text);
  result.append(static_cast<std::size_t>(missing - before), fill);
  return result;
}

Text html_escaped(TextView text) {
  Text result;
  result.reserve(text.size());
  for (const Char c : text) {
    switch (plain(c)) {
      case '&': append_ascii(result, "&amp;"); break;
      case '<': append_ascii(result, "&lt;"); break;
      case '>': append_ascii(result, "&gt;"); break;
      case '\'': append_ascii(result, "&#39;"); break;
      case '"': append_ascii(result, "&#34;"); break;
      default: result.push_back(c);
    }
  }
  return result;
}

bool has_case(TextView text, bool upper) {
  bool any = false;
  for (const Char c : text) {
    if (upper ? is_lower(c) : is_upper(c)) return false;
    if (is_title(c)) return false;
    any = any || (upper ? is_upper(c) : is_lower(c));
  }
  return any;
}

}  // namespace quipu::jinja
