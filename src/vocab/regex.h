// A compiled PCRE2 pattern (UTF-8, Unicode properties, JIT where there is one) that splits text.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace quipu::vocab {

/// Immutable; used by any number of threads at once.
class Regex {
 public:
  /// `pattern` is Quipu's own: one that does not compile is an Error(internal).
  explicit Regex(std::string pattern);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  /// Cuts `text` (as valid as prepare_subject makes it) into matches and what is between them; appends the
  /// end of each part, counted from the start of `text`, plus `offset`. Nothing for an empty text. Uses no
  /// more of the caller's stack than a fixed 32 KiB. Throws Error(unsupported) if PCRE2's limits are reached,
  /// which takes a pattern that backtracks: those of the table don't.
  void split(std::string_view text, std::size_t offset, std::vector<std::size_t>& ends) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// What patterns are matched against in place of `text` (valid but for surrogates): the same with characters
/// that PCRE2's Unicode tables don't know, or may not see, exchanged for ones of the same kind and length.
/// Returns `text` itself where there are none; else the result is kept in `storage`.
std::string_view prepare_subject(std::string_view text, std::string& storage);

}  // namespace quipu::vocab
