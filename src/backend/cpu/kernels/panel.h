// The bytes of a packed panel: 16 rows of a weight matrix, all of K. The same bytes serve one token and many,
// and every instruction set. Only constants and plain declarations here: vector code includes this file.
//
// A panel is a sequence of blocks, ascending in k; a block holds 16 rows x `elements` of k (the file format's
// own block length). `lane` is a row's number in the panel. Floats lie as [k][16 rows] (BF16 as [k/2][16
// rows][2], an odd K is padded with a zero). Block formats hold slices of 32 k, and scales as [run][16 rows]:
// those of formats with blocks of 256 lie in front of the slices, since products need them first and memory
// is read in one direction; the others' lie behind.
//
// In a slice the 32 k form groups 0..7 of 4 k, and halves of 4 groups. The "plane" of a group is 64 bytes
// [16 rows][4 k]; byte i = 4 * lane + k % 4. Quants are the file's unsigned integers, zero point not
// subtracted (Q8_0: q + 128).
//   eight  8 x 64: group g's plane
//   four   4 x 64: byte i of plane j holds group 2j in the low and group 2j + 1 in the high nibble
//   five   64: bit g of byte i is the top bit of group g; then a `four` of the low nibbles
//   six    for each half 64: bits 2n, 2n + 1 of byte i are the top bits of the half's group n; then 2 x 64 of
//          the half's low nibbles, as in `four`
//   two    for each half 64: bits 2n, 2n + 1 of byte i are the half's group n
//   three  64: bit g of byte i is the top bit of group g; then a `two` of the low bits
// No byte belongs to two rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "quant/element_type.h"

namespace quipu::cpu {

enum class SliceKind : std::uint8_t { none, two, three, four, five, six, eight };

/// Bytes of 16 rows x 32 k.
inline constexpr std::size_t kSliceBytes[] = {0, 128, 192, 256, 320, 384, 512};

/// What a panel's block looks like. Offsets are bytes from the start of the block; those of absent parts are
/// 0.
struct PanelBlockLayout {
  std::size_t elements = 0;  ///< k per block: the file's block, but NVFP4's are halved
  std::size_t bytes = 0;     ///< of 16 rows; a multiple of 16
  SliceKind slice = SliceKind::none;
  std::size_t quants = 0;  ///< the first slice
  std::size_t run = 0;     ///< k that share a scale of a byte; 0: there is none
  /// [run][16 rows] bytes: u8 (Q4_K, Q5_K), s8 (Q3_K, Q6_K, IQ4_XS), scale | min << 4 (Q2_K), the file's code
  /// of a float (MXFP4, NVFP4)
  std::size_t sub_scales = 0;
  bool signed_scales = false;
  std::size_t sub_mins = 0;  ///< [run][16 rows] bytes (Q4_K, Q5_K)
  std::size_t d = 0;         ///< [16 rows] f16: the file's d
  std::size_t m = 0;         ///< [16 rows] f16: the file's m or dmin
};

inline constexpr PanelBlockLayout kPanelF32{.elements = 1, .bytes = 64};
inline constexpr PanelBlockLayout kPanelF16{.elements = 1, .bytes = 32};
inline constexpr PanelBlockLayout kPanelBF16{.elements = 2, .bytes = 64};
inline constexpr PanelBlockLayout kPanelQ4_0{
    .elements = 32, .bytes = 288, .slice = SliceKind::four, .d = 256};
inline constexpr PanelBlockLayout kPanelIQ4_NL = kPanelQ4_0;  // quants are places in its table
inline constexpr PanelBlockLayout kPanelQ4_1{
    .elements = 32, .bytes = 320, .slice = SliceKind::four, .d = 256, .m = 288};
inline constexpr PanelBlockLayout kPanelQ5_0{
    .elements = 32, .bytes = 352, .slice = SliceKind::five, .d = 320};
inline constexpr PanelBlockLayout kPanelQ5_1{
    .elements = 32, .bytes = 384, .slice = SliceKind::five, .d = 320, .m = 352};
inline constexpr PanelBlockLayout kPanelQ8_0{
    .elements = 32, .bytes = 544, .slice = SliceKind::eight, .d = 512};
inline constexpr PanelBlockLayout kPanelQ2_K{
    .elements = 256, .bytes = 1344, .slice = SliceKind::two, .quants = 320, .run = 16, .d = 256, .m = 288};
inline constexpr PanelBlockLayout kPanelQ3_K{.elements = 256,
                                             .bytes = 1824,
                                             .slice = SliceKind::three,
                                             .quants = 288,
                                             .run = 16,
                                             .signed_scales = true,
                                             .d = 256};
inline constexpr PanelBlockLayout kPanelQ4_K{.elements = 256,
                                             .bytes = 2368,
                                             .slice = SliceKind::four,
                                             .quants = 320,
                                             .run = 32,
                                             .sub_mins = 128,
                                             .d = 256,
                                             .m = 288};
inline constexpr PanelBlockLayout kPanelQ5_K{.elements = 256,
                                             .bytes = 2880,
                                             .slice = SliceKind::five,
                                             .quants = 320,
                                             .run = 32,
                                             .sub_mins = 128,
                                             .d = 256,
                                             .m = 288};
inline constexpr PanelBlockLayout kPanelQ6_K{.elements = 256,
                                             .bytes = 3360,
                                             .slice = SliceKind::six,
                                             .quants = 288,
                                             .run = 16,
                                             .signed_scales = true,
                                             .d = 256};
// Quants of these are places in their tables.
inline constexpr PanelBlockLayout kPanelIQ4_XS{.elements = 256,
                                               .bytes = 2208,
                                               .slice = SliceKind::four,
                                               .quants = 160,
                                               .run = 32,
                                               .signed_scales = true,
                                               .d = 128};
inline constexpr PanelBlockLayout kPanelMXFP4{
    .elements = 32, .bytes = 272, .slice = SliceKind::four, .run = 32, .sub_scales = 256};
inline constexpr PanelBlockLayout kPanelNVFP4{
    .elements = 32, .bytes = 288, .slice = SliceKind::four, .run = 16, .sub_scales = 256};

/// Of a decodable type.
const PanelBlockLayout& panel_block_layout(ElementType type);

/// Bytes from one panel to the next: whole blocks, rounded up to a cache line.
std::size_t panel_bytes(ElementType type, std::size_t n_cols);

/// Packs one row, in the file's bytes (row_bytes(type, n_cols) of them), into its lane. Other lanes are not
/// touched.
void write_panel_row(ElementType type, std::size_t n_cols, const std::byte* row, std::size_t lane,
                     std::byte* panel);
/// Packs all 16 rows at once, `row_bytes` apart; false if that is not possible for this type or width.
bool write_panel(ElementType type, std::size_t n_cols, const std::byte* rows, std::size_t row_bytes,
                 std::byte* panel);
/// The reverse of one row, exactly.
void read_panel_row(ElementType type, std::size_t n_cols, const std::byte* panel, std::size_t lane,
                    std::byte* row);

/// One row's share of a block of a block format, taken apart.
struct PanelBlockRow {
  std::array<std::uint8_t, 256> quants{};  ///< as stored; the first `elements` count
  std::array<std::int16_t, 16> scales{};   ///< of each run; or the code of a float
  std::array<std::int16_t, 16> mins{};
  std::uint16_t d = 0;  ///< bits of an f16
  std::uint16_t m = 0;
};
void write_panel_block(const PanelBlockLayout& layout, const PanelBlockRow& row, std::size_t lane,
                       std::byte* block);
PanelBlockRow read_panel_block(const PanelBlockLayout& layout, const std::byte* block, std::size_t lane);

}  // namespace quipu::cpu
