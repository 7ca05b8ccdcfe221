// The tables that find_filter looks into: names as the reference has them. A new filter is a function and a
// row.
#pragma once

#include <span>
#include <string_view>

#include "chat/jinja/builtins.h"

namespace quipu::jinja {

struct FilterRow {
  std::string_view name;
  Filter filter;
};

std::span<const FilterRow> text_filters();
std::span<const FilterRow> value_filters();
std::span<const FilterRow> sequence_filters();

}  // namespace quipu::jinja
