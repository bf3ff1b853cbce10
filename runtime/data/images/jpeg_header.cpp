// See jpeg_header.hpp. The markers are those of ITU-T T.81, annex B.
#include "runtime/data/images/jpeg_header.hpp"

#include <algorithm>
#include <string_view>

#include "runtime/data/images/exif.hpp"
#include "runtime/data/images/image.hpp"

namespace dlrun::runtime {
namespace {

using Bytes = std::span<const std::uint8_t>;
constexpr std::uint8_t kStart = 0xd8, kEnd = 0xd9, kScan = 0xda, kBaseline = 0xc0, kExif = 0xe1,
                       kAdobe = 0xee;

std::size_t word_at(Bytes bytes, std::size_t at) {
  return std::size_t{bytes[at]} << 8 | bytes[at + 1];
}

// Of other frames, lossless, progressive or arithmetic; the tables of Huffman and arithmetic coding are none.
bool is_other_frame(std::uint8_t marker) {
  return marker > kBaseline && marker <= 0xcf && marker != 0xc4 && marker != 0xcc;
}

bool is_turned(Bytes content) {
  return exif_orientation(content).value_or(1) != 1;
}

// Adobe's marker says so of files whose three colours are red, green and blue.
bool is_untransformed(Bytes content) {
  constexpr std::string_view name = "Adobe";
  constexpr std::size_t transform = 11;
  return content.size() > transform && content[transform] == 0 &&
         std::equal(name.begin(), name.end(), content.begin());
}

// Precision, height, width, and three bytes a component, of which the first is its name.
std::optional<JpegHeader> header_of_frame(Bytes content) {
  constexpr std::size_t fixed = 6, each = 3;
  if (content.size() < fixed || content[0] != 8) return std::nullopt;
  const std::size_t components = content[5];
  if ((components != 1 && components != 3) || content.size() < fixed + each * components) return std::nullopt;
  if (components == 3 && content[fixed] == 'R' && content[fixed + each] == 'G') return std::nullopt;
  const JpegHeader out{.width = static_cast<std::int64_t>(word_at(content, 3)),
                       .height = static_cast<std::int64_t>(word_at(content, 1))};
  if (out.width == 0 || out.height == 0 || out.width * out.height > kMaxPixels) return std::nullopt;
  return out;
}

bool has_its_end(Bytes file) {
  return file.size() >= 2 && file[file.size() - 2] == 0xff && file.back() == kEnd;
}

}  // namespace

std::optional<JpegHeader> plain_jpeg_header(Bytes file) {
  std::optional<JpegHeader> out;
  if (file.size() < 4 || file[0] != 0xff || file[1] != kStart || !has_its_end(file)) return std::nullopt;
  for (std::size_t at = 2; at + 4 <= file.size();) {
    if (file[at] != 0xff) return std::nullopt;
    const std::uint8_t marker = file[at + 1];
    if (marker == 0xff) {  // a fill byte
      ++at;
      continue;
    }
    if (marker == kScan) return out;
    const std::size_t length = word_at(file, at + 2);
    if (length < 2 || at + 2 + length > file.size() || is_other_frame(marker)) return std::nullopt;
    const Bytes content = file.subspan(at + 4, length - 2);
    if (marker == kExif && is_turned(content)) return std::nullopt;
    if (marker == kAdobe && is_untransformed(content)) return std::nullopt;
    // Two frames: a decoder may take the size of either.
    if (marker == kBaseline && (out || !(out = header_of_frame(content)))) return std::nullopt;
    at += 2 + length;
  }
  return std::nullopt;
}

}  // namespace dlrun::runtime
