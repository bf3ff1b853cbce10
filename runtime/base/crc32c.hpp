// CRC-32C (Castagnoli) as TFRecord files have it, by the processor's instruction where there is one.
#pragma once

#include <cstdint>
#include <string_view>

namespace dlrun::runtime {

std::uint32_t crc32c(std::string_view data);
/// What TFRecord stores: rotated, and a constant added, so that the CRC of data with CRCs in it is no trap.
std::uint32_t masked_crc32c(std::string_view data);

}  // namespace dlrun::runtime
