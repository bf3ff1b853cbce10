// CommDtype: the form in which numbers travel between ranks, and the loops that bring them into it and back.
// Sums are always made in f32; a 16-bit dtype halves the bytes and rounds what is sent, to the nearest and to
// even on a tie. f16 has the finer steps, bf16 the range of f32: a gradient above 65504 is infinite in f16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dlrun::runtime {

enum class CommDtype { f32, bf16, f16 };

std::string_view name_of(CommDtype dtype);
std::size_t bytes_of(CommDtype dtype, std::size_t count);

/// `count` numbers each; the two places do not overlap.
void pack(CommDtype dtype, std::byte* to, const float* from, std::size_t count);
void unpack(CommDtype dtype, float* to, const std::byte* from, std::size_t count);
void add_unpacked(CommDtype dtype, float* sum, const std::byte* more, std::size_t count);
/// Packs, and leaves in `data` what the others will unpack, so that all ranks hold the same bits.
void pack_rounding(CommDtype dtype, std::byte* to, float* data, std::size_t count);

}  // namespace dlrun::runtime
