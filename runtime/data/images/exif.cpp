#include "runtime/data/images/exif.hpp"

#include <algorithm>
#include <cstring>

namespace dlrun::runtime {
namespace {

// The numbers of a TIFF, in either byte order; unset beyond the end.
class Tiff {
 public:
  explicit Tiff(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool begins() {
    if (bytes_.size() < 8) return false;
    little_ = bytes_[0] == 'I' && bytes_[1] == 'I';
    return (little_ || (bytes_[0] == 'M' && bytes_[1] == 'M')) && number(2, 2) == 42U;
  }
  std::optional<std::uint32_t> number(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || bytes_.size() - at < size) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value = value << 8 | bytes_[at + (little_ ? size - 1 - i : i)];
    return value;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  bool little_ = false;
};

}  // namespace

std::optional<int> exif_orientation(std::span<const std::uint8_t> marker) {
  constexpr std::size_t header = 6, entry = 12;
  constexpr std::uint32_t orientation = 0x0112;
  if (marker.size() < header || std::memcmp(marker.data(), "Exif\0\0", header) != 0) return std::nullopt;
  Tiff tiff(marker.subspan(header));
  if (!tiff.begins()) return std::nullopt;
  const std::size_t directory = *tiff.number(4, 4);
  const auto count = tiff.number(directory, 2);
  for (std::size_t i = 0; count && i < *count; ++i) {
    const std::size_t at = directory + 2 + i * entry;
    const auto tag = tiff.number(at, 2), value = tiff.number(at + 8, 2);
    if (!tag || !value) return std::nullopt;
    if (*tag == orientation) return *value >= 1 && *value <= 8 ? std::optional<int>(*value) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace dlrun::runtime
