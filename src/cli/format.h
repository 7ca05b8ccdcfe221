// Text for people: tables, sizes, and text from files made fit for a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quipu::cli {

/// Columns padded to their widest cell, two spaces apart; the last column is not padded.
class Table {
 public:
  explicit Table(std::vector<std::string> titles);
  void align_right(std::size_t column) { right_[column] = true; }
  /// As many cells as titles.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const;
  /// A table of Markdown's.
  std::string markdown() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // titles first
  std::vector<bool> right_;
};

/// Control characters and bytes that are not UTF-8, which a terminal might obey, are shown as escapes.
std::string printable(std::string_view text);

/// "2.66 MB", in powers of 1000.
std::string human_bytes(std::uint64_t bytes);
/// "1.33 M"
std::string human_count(std::uint64_t count);

}  // namespace quipu::cli
