// Text that was tokenized as "Hello , it 's" comes out as "Hello, it's". A pass looks at the result of the
// one before.
#include "vocab/clean_spaces.h"

namespace quipu::vocab {

namespace {

// Drops each space that `follows` approves of, given what comes after it.
template <typename Follows>
std::string drop_spaces_before(std::string_view text, Follows follows) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ' && follows(text.substr(i + 1))) continue;
    result.push_back(text[i]);
  }
  return result;
}

std::string join_lone_apostrophes(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with(" ' ")) {
      result.push_back('\'');
      i += 2;  // the space after it is gone and cannot begin another match
    } else {
      result.push_back(text[i]);
    }
  }
  return result;
}

}  // namespace

std::string clean_spaces(std::string_view text) {
  const std::string punctuated = drop_spaces_before(text, [](std::string_view rest) {
    return rest.starts_with('?') || rest.starts_with('!') || rest.starts_with('.') || rest.starts_with(',');
  });
  const std::string joined = join_lone_apostrophes(punctuated);
  return drop_spaces_before(joined, [](std::string_view rest) {
    return rest.starts_with("'s") || rest.starts_with("'m") || rest.starts_with("'re") ||
           rest.starts_with("'ve");
  });
}

}  // namespace quipu::vocab
