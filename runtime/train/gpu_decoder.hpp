// The images of a training decoded on its rank's GPU: train.data.decode is nvjpeg.
#pragma once

#include "runtime/base/input_shape.hpp"
#include "runtime/data/images/batch_decoder.hpp"
#include "runtime/train/gpu.hpp"

namespace dlrun::runtime {

/// What a rank on a CPU is told.
Error needs_gpu();

/// For samples of `shape`. An Error where the rank computes on a CPU, or its GPU or node has no nvJPEG.
Result<std::shared_ptr<BatchDecoder>> make_gpu_decoder(const Device& device, const InputShape& shape);

}  // namespace dlrun::runtime
