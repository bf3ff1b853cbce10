// BatchDecoder: JPEGs that a device decodes, many in one call, cuts, scales and lays out in planes. It takes
// the kind of plain_jpeg_header() alone, and not all of those; the caller decodes the others.
#pragma once

#include "runtime/data/images/transform.hpp"

namespace dlrun::runtime {

class BatchDecoder {
 public:
  struct Image {
    std::span<const std::uint8_t> file;
    std::int64_t width, height;  // as its header has them
    Cut cut;
    std::span<std::uint8_t> row;  // channels x height x width of the samples
    bool is_done = false;
  };
  virtual ~BatchDecoder() = default;

  /// How many images a call is best made of.
  virtual std::size_t usual() const = 0;
  /// Fills the rows of those that it can decode. What a row becomes depends on its own file and cut alone.
  /// Any thread may call it. An Error is the device's.
  virtual Result<void> decode(std::span<Image> images) = 0;
};

}  // namespace dlrun::runtime
