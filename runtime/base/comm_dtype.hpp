// Wire: the form in which numbers travel between ranks, and the loops that bring them into it and back. Sums
// are always made in f32; a shorter wire halves the bytes and rounds what is sent, to the nearest and to even
// on a tie. f16 has the finer steps, bf16 the range of f32: a gradient above 65504 is infinite in f16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dlrun::runtime {

enum class Wire { f32, bf16, f16 };

std::string_view name_of(Wire wire);
std::size_t bytes_of(Wire wire, std::size_t count);

// `count` numbers each; the two places do not overlap.
void pack(Wire wire, std::byte* to, const float* from, std::size_t count);
void unpack(Wire wire, float* to, const std::byte* from, std::size_t count);
void add_unpacked(Wire wire, float* sum, const std::byte* more, std::size_t count);
// Packs, and leaves in `data` what the others will unpack, so that all ranks hold the same bits.
void pack_rounding(Wire wire, std::byte* to, float* data, std::size_t count);

}  // namespace dlrun::runtime
