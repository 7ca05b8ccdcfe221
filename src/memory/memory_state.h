// What a memory holds, apart from keys and values: which cells there are, and which sequences have them in
// which places. Saved states are made of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace quipu {

/// Places that a restored sequence may have; a table of pages is made for them.
inline constexpr std::int32_t kEndRestoredPlace = 1 << 28;

struct MemoryState {
  struct Cell {
    std::int32_t position = 0;
    std::int32_t shift = 0;  ///< by how much it has changed since its key was turned
    // Where the data are, in a description of what is there; without meaning when restoring.
    std::int32_t page = -1;
    std::int32_t slot = -1;
  };
  struct Placed {
    std::int32_t place = 0;
    std::uint32_t cell = 0;  ///< index into Part::cells
    bool operator==(const Placed&) const = default;
  };
  struct Sequence {
    std::int32_t id = 0;
    // What a window forgot: lowest and highest position (-1: nothing), and highest place + 1.
    std::int32_t forgotten_low = 0;
    std::int32_t forgotten_high = -1;
    std::int32_t forgotten_end = 0;
    std::vector<Placed> cells;  ///< by ascending place, no cell twice
  };
  struct Part {
    bool has_data = true;  ///< false: the cells are expected to be there already
    std::vector<Cell> cells;
    std::vector<Sequence> sequences;  ///< that are not empty, by ascending id
  };
  std::vector<Part> parts;
};

/// What to save, or what a saved state becomes.
struct StateScope {
  std::optional<std::int32_t> sequence = {};  ///< nothing: all of them
  /// Only what trimming cannot bring back: the data of parts with a window. Restoring takes the sequence back
  /// to what it was, if no more than tokens behind it came since.
  bool partial_only = false;
};

/// Fills in a cell's bytes in one layer of a part; they stand for finite numbers. Cannot fail.
using CellSource =
    std::function<void(std::size_t part, std::size_t layer, std::size_t cell, std::span<std::byte> bytes)>;

}  // namespace quipu
