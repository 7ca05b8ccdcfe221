// Which architectures run.
#pragma once

#include <string>
#include <vector>

namespace quipu {

/// Architectures that have much in common.
struct SupportedFamily {
  std::string name;                        ///< short, as of a file
  std::string title;                       ///< for people
  std::vector<std::string> architectures;  ///< values of `general.architecture`
  std::string page;  ///< Markdown: what each is made of, its papers, its metadata keys and its tensors
};

/// By name.
std::vector<SupportedFamily> supported_architectures();
/// Markdown: the index of the families' pages, which are beside it as NAME.md.
std::string supported_architectures_page();

}  // namespace quipu
