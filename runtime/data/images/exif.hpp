// The one thing that is read of a photograph's EXIF data: how the camera was held.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace dlrun::runtime {

/// The orientation, 1 to 8, of the content of a JPEG's APP1 marker; unset if it is not EXIF or has none.
std::optional<int> exif_orientation(std::span<const std::uint8_t> marker);

}  // namespace dlrun::runtime
