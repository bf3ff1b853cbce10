// What the markers of a JPEG say, for decoders that only take the usual kind: those in hardware. It looks at
// no pixel.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace dlrun::runtime {

struct JpegHeader {
  std::int64_t width = 0, height = 0;
};

/// Of a file that is sequential, of 8 bits, grey or YCbCr, upright, and has its end; else unset, and whether
/// it is damaged is not known.
std::optional<JpegHeader> plain_jpeg_header(std::span<const std::uint8_t> file);

}  // namespace dlrun::runtime
