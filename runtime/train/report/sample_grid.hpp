// Sample grid: what a GAN's generator makes, as one PNG beside the metrics, for people to look at. The same
// noise each time, so that two grids show how the training went on between them. Images of one channel or
// three are shown as they are; of others, whose channels are no colours, each channel is shown in grey.
#pragma once

#include <filesystem>

#include "runtime/engine/engine.hpp"
#include "runtime/train/train_spec.hpp"

namespace dlrun::runtime {

/// Writes up to 8 x 8 images to samples-epoch-NNNN.png in `folder`, or up to 8 images of up to 8 channels, an
/// image a row; the file's path. `shape` is an image's. The engine is a GAN's.
Result<std::filesystem::path> write_sample_grid(Engine& engine, const InputShape& shape,
                                                const Conversion& conversion,
                                                const std::filesystem::path& folder, std::uint64_t epoch);

}  // namespace dlrun::runtime
