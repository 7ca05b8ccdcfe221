#include "cli/format.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/json.h"

namespace quipu::cli {

namespace {

/// Columns that UTF-8 text takes, near enough: one for each character.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string scaled(std::uint64_t value, std::string_view unit) {
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  auto scaled_value = static_cast<double>(value);
  std::size_t prefix = 0;
  while (scaled_value >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
    scaled_value /= 1000;
    ++prefix;
  }
  if (prefix == 0) return fmt::format("{} {}", value, unit);
  return fmt::format("{:.3g} {}{}", scaled_value, kPrefixes[prefix], unit);
}

}  // namespace

Table::Table(std::vector<std::string> titles) : right_(titles.size()) {
  rows_.push_back(std::move(titles));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(right_.size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string result;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width(row[i]), ' ');
      const bool last = i + 1 == row.size();
      if (right_[i]) result += padding;
      result += row[i];
      if (!right_[i] && !last) result += padding;
      result += last ? "\n" : "  ";
    }
  }
  return result;
}

std::string Table::markdown() const {
  std::string result;
  for (const auto& row : rows_) {
    for (const std::string& cell : row) result.append("| ").append(cell).append(" ");
    result += "|\n";
    if (&row != &rows_.front()) continue;
    for (const bool right : right_) result += right ? "|---:" : "|---";
    result += "|\n";
  }
  return result;
}

std::string printable(std::string_view text) {
  const std::string escaped = quote_bytes(text);
  return escaped.substr(1, escaped.size() - 2);
}

std::string human_bytes(std::uint64_t bytes) {
  return scaled(bytes, bytes < 1000 ? "bytes" : "B");
}
std::string human_count(std::uint64_t count) {
  std::string text = scaled(count, "");
  if (text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace quipu::cli
