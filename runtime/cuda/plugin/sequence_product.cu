// See sequence_product.hpp. A row of the sequence is a column of the library's matrices.
#include "runtime/cuda/plugin/sequence_product.hpp"

namespace dlrun::cuda {
namespace {

constexpr auto kPlain = Product::Lies::plain, kTurned = Product::Lies::turned;
const float kOne = 1, kZero = 0;

}  // namespace

SequenceProduct::SequenceProduct(Device& device, const Size& size, const std::string& name)
    : forward_(device,
               {.m = size.outputs,
                .n = size.rows,
                .k = size.inputs,
                .a = kTurned,
                .b = kPlain,
                .step_b = 0,
                .step_d = size.step},
               name),
      weights_(device,
               {.m = size.inputs,
                .n = size.outputs,
                .k = size.rows,
                .a = kPlain,
                .b = kTurned,
                .step_b = size.step,
                .step_d = 0,
                .result = Product::Result::f32},
               "the weights of " + name),
      data_(device,
            {.m = size.inputs,
             .n = size.rows,
             .k = size.outputs,
             .a = kPlain,
             .b = kPlain,
             .step_b = size.step,
             .step_d = 0},
            "the data of " + name) {}

void SequenceProduct::Pass::run(Device& device, const Product::Matrices& matrices, bool adds) const {
  check(product.run(device.main, algorithm, matrices, adds ? kOne : kZero), "a product");
}

void SequenceProduct::forward(Device& device, const void* x, const void* w, void* y, const void* bias) {
  if (bias != nullptr) forward_.product.add_to_rows(bias);
  forward_.run(device, {w, x, y}, false);
}

void SequenceProduct::weights(Device& device, const void* x, const void* dy, float* dw, bool adds) const {
  weights_.run(device, {x, dy, dw}, adds);
}

void SequenceProduct::data(Device& device, const void* w, const void* dy, void* dx, bool adds) const {
  data_.run(device, {w, dy, dx}, adds);
}

}  // namespace dlrun::cuda
