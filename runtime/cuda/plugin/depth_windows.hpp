// Windows over the planes of a volume, NDHWC: the planes of each window side by side, as channels of one
// image. So a convolution over a volume is one over images, in all precisions, algorithms and orders of
// addition that those have. Where a window is one plane, the volume lies so already. In bf16 a window may get
// planes of zeros behind its own, so that the channels of an image divide by eight, as fast algorithms want
// it; filters then get zeros there. It owns no memory.
#pragma once

#include <string>

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

// How many planes there are, and the windows over them; an image has one.
struct Planes {
  std::int64_t in = 1, out = 1, window = 1, stride = 1, padding = 0;

  // Windows are cubes.
  static Planes of(const DlrunCudaNode& node) {
    if (node.in_depth == 0) return {};
    return {node.in_depth, node.depth, node.window, node.stride, node.padding};
  }
  std::string text() const {
    if (in == 1 && out == 1 && window == 1) return {};
    return " over " + std::to_string(in) + " to " + std::to_string(out) + " planes, windows of " +
           std::to_string(window);
  }
};

class DepthWindows {
 public:
  // `area`: pixels of a plane.
  DepthWindows(const Device& device, const Planes& planes, std::int64_t area, std::int64_t channels);

  // Whether a convolution needs a copy at all.
  bool copies() const { return planes_.window != 1 || planes_.padding != 0 || planes_.in != planes_.out; }
  // Of that; 0 where there is none.
  std::size_t bytes() const;
  // Of a pixel of the images.
  std::int64_t image_channels() const { return channels_ * steps_; }
  // Whether windows have planes of zeros, and filters need a copy, too.
  bool pads() const { return steps_ != planes_.window; }
  // Filters with those planes; `pixels`: of a plane of all filters.
  std::size_t filter_bytes(std::int64_t pixels) const;
  void pad_filters(cudaStream_t stream, const void* filters, void* to, std::int64_t pixels) const;
  void unpad_filters(cudaStream_t stream, const void* padded, void* to, std::int64_t pixels) const;
  // [batch][out][area][steps][channels] of [batch][in][area][channels]; padding is zeros.
  void spread(cudaStream_t stream, const void* volume, void* images) const;
  // The other way: each number of the volume is the sum of those that come from it, added to what is there
  // where `adds`.
  void gather(cudaStream_t stream, const void* images, void* volume, bool adds) const;

 private:
  bool half_;
  std::int64_t batch_, area_, channels_;
  Planes planes_;
  std::int64_t steps_;  // planes of a window with those of zeros
};

}  // namespace dlrun::cuda
