#include "chat/jinja/filters.h"

#include <algorithm>

namespace quipu::jinja {

Filter find_filter(std::string_view name) {
  for (const std::span<const FilterRow> rows : {text_filters(), value_filters(), sequence_filters()}) {
    const auto row = std::ranges::find(rows, name, &FilterRow::name);
    if (row != rows.end()) return row->filter;
  }
  return nullptr;
}

}  // namespace quipu::jinja
