// How the numbers of an image lie: on the device pixels, then channels (NHWC); plain, as a vector that stands
// for an image means them, channels, then pixels. Arithmetic alone.
#pragma once

#include <cstdint>

#include "runtime/cuda/plugin/host_device.hpp"

namespace dlrun::cuda {

struct ImageOrder {
  std::int64_t channels, pixels;

  // Where the number that lies at `place` of a batch on the device lies in the plain batch.
  DLRUN_HOST_DEVICE std::int64_t plain(std::int64_t place) const {
    const std::int64_t image = place / (channels * pixels), within = place - image * channels * pixels;
    const std::int64_t pixel = within / channels, channel = within - pixel * channels;
    return (image * channels + channel) * pixels + pixel;
  }
};

}  // namespace dlrun::cuda
