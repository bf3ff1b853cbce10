// The one thing that is read of a photograph's EXIF data: how the camera was held.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace dlrun::runtime {

/// 1 to 8, from the content of a JPEG's APP1 marker; nothing where it is not EXIF or does not say.
std::optional<int> exif_orientation(std::span<const std::uint8_t> marker);

}  // namespace dlrun::runtime
