// The gradient of a convolution's weights by matrix products: one for each place of the window and each
// column of outputs, over the batch and the column's rows. oneDNN's own loops read and write the whole
// gradient for every image; where many weights see few pixels, that is their time. A product reads and writes
// its part of the gradient in a cache. What it refuses: groups, a bias, bf16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/cpu/onednn.hpp"

namespace dlrun::runtime::kernels {

struct WeightShape {
  Extents source, grad;  // of the input and of the output's gradient
  std::int64_t kernel, kernel_width;
  std::int64_t stride;
  std::int64_t padding, padding_width;

  std::int64_t gradient_elements() const {
    return source.channels() * grad.channels() * kernel * kernel_width;
  }
};

// Whether it is the faster way. A rule and no clock: a job has the same bits on every run.
bool prefers_weight_products(const WeightShape& shape);

// Floats of scratch memory that it needs.
std::size_t weight_products_scratch(const WeightShape& shape);

// gradient[out block][in block][row of the window][column][in lane][out lane], all of it written.
void weight_products(const WeightShape& shape, const float* source, const float* grad, float* gradient,
                     float* scratch);

}  // namespace dlrun::runtime::kernels
