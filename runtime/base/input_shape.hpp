// What a model is fed with: the shape of one sample and what the bytes of a pixel mean. Data sets make it,
// models and engines take it.
#pragma once

#include <cstdint>
#include <vector>

namespace dlrun::runtime {

struct InputShape {
  std::int64_t channels = 1, height = 28, width = 28, classes = 10;
};

// What a byte of a pixel means, a number a channel: byte * scale + shift.
struct InputScaling {
  std::vector<float> scale, shift;
};

}  // namespace dlrun::runtime
