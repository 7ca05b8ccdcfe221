// Saving and loading what a context remembers: all of it or one sequence, to memory or to a file. Everything
// is checked before anything changes; the format is written down in docs/state-format.md.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "memory/memory.h"
#include "memory/state_cells.h"
#include "quipu/compression.h"
#include "quipu/types.h"

namespace quipu {

/// What a state needs of a context. The facts (name, value) are what stored numbers depend on beyond the
/// memory's own shape; a state fits only where all are the same.
struct StateAccess {
  Memory* memory;
  std::vector<std::pair<std::string, std::string>> facts;
  StateCells* text = nullptr;  ///< what a decoder sees of its encoder; null: there is no such thing
};

/// Bytes that saving writes now, with the tokens that the state stands for. With compression they are known
/// only once all is compressed.
std::size_t state_bytes(const StateAccess& access, const StateScope& scope, std::size_t n_tokens = 0,
                        Compression compression = Compression::none);
std::vector<std::byte> save_state(const StateAccess& access, const StateScope& scope,
                                  std::span<const Token> tokens, Compression compression = Compression::none);
/// Error(invalid_argument) if `out` is too small. Gives the bytes written.
std::size_t save_state(const StateAccess& access, const StateScope& scope, std::span<const Token> tokens,
                       std::span<std::byte> out, Compression compression = Compression::none);
/// The file is the old one or the new one, whole. Error(io). Gives its size.
std::size_t save_state_file(const StateAccess& access, const StateScope& scope, std::span<const Token> tokens,
                            const std::filesystem::path& path, Compression compression = Compression::none);

struct LoadedState {
  std::vector<Token> tokens;
  std::size_t n_bytes = 0;
};

/// Replaces everything by the state of a context or, with `sequence`, one sequence by the state of a
/// sequence, whatever its number was. A partial state takes a sequence back. Any error leaves all as it was:
/// Error(bad_file) names the section that is damaged or the fact that differs, Error(invalid_argument) what
/// does not fit to what is there or more than `max_tokens` tokens, Error(out_of_memory) lack of room.
LoadedState load_state(const StateAccess& access, std::optional<SequenceId> sequence,
                       std::span<const std::byte> bytes, std::size_t max_tokens = SIZE_MAX);
LoadedState load_state_file(const StateAccess& access, std::optional<SequenceId> sequence,
                            const std::filesystem::path& path, std::size_t max_tokens = SIZE_MAX);

/// Only the tokens that a state stands for.
std::vector<Token> read_state_tokens(std::span<const std::byte> bytes);
std::vector<Token> read_state_file_tokens(const std::filesystem::path& path);

}  // namespace quipu
