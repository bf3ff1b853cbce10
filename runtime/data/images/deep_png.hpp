// PNG files of 16 bits per channel as arrays of numbers, as they lie: 0..65535, no gamma, no rounding. Grey
// ones have one channel, those in colour three, which lie last. What would need a decision about the numbers
// (8 bits or fewer, a palette, transparency) is refused by name.
#pragma once

#include <filesystem>
#include <memory>

#include "runtime/data/numbers/number_array.hpp"
#include "runtime/data/numbers/sample_axes.hpp"

namespace dlrun::runtime {

/// One row, the image: [1, height, width], or [1, height, width, 3]. Reads the file's header alone; the
/// pixels are decoded, and their checksums compared, whenever the row is read.
Result<std::shared_ptr<const NumberArray>> open_deep_png(const std::filesystem::path& file);

/// The axes of its one row.
SampleAxes axes_of_deep_png(const NumberArray& image);

}  // namespace dlrun::runtime
