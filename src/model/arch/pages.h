// What is supported, for people: a page of each family of architectures, written from its table.
#pragma once

#include <string>

#include "model/arch/architecture.h"

namespace quipu {

/// A Markdown page: of each architecture what it is made of, the keys that it reads and the tensors that its
/// files hold, all from the table that models are built from.
std::string family_page(const ArchitectureFamily& family);

/// The index of all pages.
std::string families_page();

}  // namespace quipu
