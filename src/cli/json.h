// JSON as the program prints it: keys in the order they were added, one value a call.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace quipu::cli {

using Json = nlohmann::ordered_json;

/// Bytes that are not UTF-8 become U+FFFD, numbers that JSON lacks (NaN, infinities) null.
std::string dump(const Json& value, int indent = 2);

/// A 32-bit float as the shortest number that reads back as it ("0.8", not 0.800000011920929).
Json json_of(float value);

/// Any bytes as a printable word in double quotes.
std::string quote_bytes(std::string_view bytes);

}  // namespace quipu::cli
