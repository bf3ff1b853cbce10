// What a model is fed with: the shape of one sample and what the bytes of a pixel mean. Data sets make it,
// models and engines take it.
#pragma once

#include <cstdint>
#include <vector>

namespace dlrun::runtime {

struct InputShape {
  std::int64_t channels = 1, height = 28, width = 28, classes = 10;
};

// How a byte of a pixel becomes a number: byte * scale + shift, with one scale and shift per channel.
struct InputScaling {
  std::vector<float> scale, shift;
};

}  // namespace dlrun::runtime
