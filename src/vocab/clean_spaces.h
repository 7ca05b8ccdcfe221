// The clean-up of spaces that some vocabularies want after detokenizing.
#pragma once

#include <string>
#include <string_view>

namespace quipu::vocab {

/// Removes the space before each of `?!.,`, the spaces around an apostrophe that stands alone, and the space
/// before 's, 'm, 're and 've, in three passes.
std::string clean_spaces(std::string_view text);

}  // namespace quipu::vocab
