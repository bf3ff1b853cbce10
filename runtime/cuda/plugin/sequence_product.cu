// See sequence_product.hpp. A row of the sequence is a column of the library's matrices.
#include "runtime/cuda/plugin/gelu.hpp"
#include "runtime/cuda/plugin/sequence_product.hpp"

namespace dlrun::cuda {
namespace {

using Also = Product::Also;
constexpr auto kPlain = Product::Lies::plain, kTurned = Product::Lies::turned;

Product::Size forward_size(const SequenceProduct::Size& size, Also also) {
  Product::Size out{size.outputs, size.rows, size.inputs, kTurned, kPlain};
  out.also = also;
  return out;
}

Product::Size weights_size(const SequenceProduct::Size& size) {
  Product::Size out{size.inputs, size.learned != 0 ? size.learned : size.outputs, size.rows, kPlain, kTurned};
  out.step_b = size.outputs, out.result = Product::Result::f32;
  return out;
}

Product::Size data_size(const SequenceProduct::Size& size, Also also) {
  Product::Size out{size.inputs, size.rows, size.outputs, kPlain, kPlain};
  out.also = also;
  return out;
}

Also with_bias(const SequenceProduct::Size& size) {
  return size.added_bias == runtime::Bias::learned ? Also::row_bias : Also::nothing;
}

}  // namespace

SequenceProduct::Pass SequenceProduct::required(Device& device, const Product::Size& size,
                                                const std::string& name) {
  Pass made(device, size, name);
  if (!made.exists())
    throw Failure("cuBLASLt has no algorithm for " + name + " that gives the same bits in every run");
  return made;
}

std::optional<SequenceProduct::Pass> SequenceProduct::if_there(Device& device, const Product::Size& size,
                                                               const std::string& name) {
  Pass made(device, size, name);
  if (!made.exists()) return std::nullopt;
  return made;
}

SequenceProduct::SequenceProduct(Device& device, const Size& size, const std::string& name)
    : size_(size),
      forward_(required(device, forward_size(size, with_bias(size)), name)),
      weights_(required(device, weights_size(size), "the weights of " + name)),
      data_(required(device, data_size(size, Also::nothing), "the data of " + name)) {
  if (size.then == Size::Then::gelu && size.added_bias == runtime::Bias::learned)
    activated_ = if_there(device, forward_size(size, Also::gelu), name);
  if (size.before == Size::Then::gelu) inner_ = if_there(device, data_size(size, Also::gelu_back), name);
  if (size.bias == runtime::Bias::learned) sums_.emplace(device, size.outputs);
}

void SequenceProduct::Pass::run(Device& device, const Product::Matrices& matrices, float prior) const {
  check(product_->run(device.main, *algorithm_, matrices, prior), "a product");
}

void SequenceProduct::forward(Device& device, const Forward& arrays) const {
  const float prior = arrays.added != nullptr ? 1.0F : 0.0F;
  if (size_.then == Size::Then::nothing)
    return forward_.run(device, {arrays.w, arrays.x, arrays.y, arrays.added, arrays.bias}, prior);
  if (activated_)
    return activated_->run(device, {arrays.w, arrays.x, arrays.y, nullptr, arrays.bias, arrays.inner}, 0);
  forward_.run(device, {arrays.w, arrays.x, arrays.inner, nullptr, arrays.bias}, 0);
  gelu_by_tanh(device, arrays.y, arrays.inner, size_.rows * size_.outputs);
}

void SequenceProduct::weights(Device& device, const void* x, const void* dy, float* dw, float* of_bias,
                              bool adds, Rows rows) const {
  weights_.run(device, {x, dy, dw}, adds ? 1.0F : 0.0F);
  if (of_bias == nullptr) return;
  if (rows == Rows::summed)
    sums_->finish(device, 0, of_bias, adds);
  else
    sums_->sum(device, dy, size_.rows, of_bias, adds);
}

void SequenceProduct::data(Device& device, const void* w, const void* dy, void* dx, bool adds,
                           void* inner) const {
  if (inner != nullptr && inner_ && !adds)
    return inner_->run(device, {w, dy, dx, nullptr, nullptr, inner}, 0);
  data_.run(device, {w, dy, dx}, adds ? 1.0F : 0.0F);
}

}  // namespace dlrun::cuda
