// Sample grid: what a GAN's generator makes, as one PNG beside the metrics, for people to look at. The same
// noise each time, so that two grids show how the training went on between them.
#pragma once

#include <filesystem>

#include "runtime/graph/engine.hpp"
#include "runtime/train/train_spec.hpp"

namespace dlrun::runtime {

// Writes up to 8 x 8 images to samples-epoch-NNNN.png in `folder`; the file's path. `shape` is an image's,
// which has one channel or three: others are refused.
Result<std::filesystem::path> write_sample_grid(Engine& engine, const InputShape& shape,
                                                const Conversion& conversion,
                                                const std::filesystem::path& folder, std::uint64_t epoch);

}  // namespace dlrun::runtime
