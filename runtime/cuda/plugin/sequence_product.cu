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

// A gradient of weights of which not all outputs have some takes twice as long where their number is odd. So
// it is one product of whole kWhole outputs, and one of the kWhole behind these, of which some are kept.
constexpr std::int64_t kWhole = 64;

std::int64_t whole_outputs(const SequenceProduct::Size& size) {
  const std::int64_t whole = size.learned / kWhole * kWhole;
  return size.learned == 0                             ? size.outputs
         : whole == 0 || whole + kWhole > size.outputs ? size.learned
                                                       : whole;
}
std::int64_t rest_outputs(const SequenceProduct::Size& size) {
  return size.learned == 0 ? 0 : size.learned - whole_outputs(size);
}

void take(Device& device, float* to, const float* from, std::int64_t count, bool adds) {
  for_each(device.stream, count, [=] __device__(std::int64_t i) { to[i] = (adds ? to[i] : 0.0F) + from[i]; });
}

Product::Size weights_size(const SequenceProduct::Size& size, std::int64_t outputs) {
  Product::Size out{size.inputs, outputs, size.rows, kPlain, kTurned};
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
                                                const std::string& name, float prior) {
  Pass made(device, size, name, prior);
  if (!made.exists())
    throw Failure("cuBLASLt has no algorithm for " + name + " that gives the same bits in every run");
  return made;
}

std::optional<SequenceProduct::Pass> SequenceProduct::if_there(Device& device, const Product::Size& size,
                                                               const std::string& name) {
  Pass made(device, size, name, 0);
  if (!made.exists()) return std::nullopt;
  return made;
}

SequenceProduct::SequenceProduct(Device& device, const Size& size, const std::string& name)
    : size_(size),
      forward_(required(device, forward_size(size, with_bias(size)), name, size.adds ? 1.0F : 0.0F)),
      weights_(required(device, weights_size(size, whole_outputs(size)), "the weights of " + name)),
      data_(required(device, data_size(size, Also::nothing), "the data of " + name)) {
  if (size.then == Size::Then::gelu && size.added_bias == runtime::Bias::learned)
    activated_ = if_there(device, forward_size(size, Also::gelu), name);
  if (size.before == Size::Then::gelu) inner_ = if_there(device, data_size(size, Also::gelu_back), name);
  if (rest_outputs(size) > 0) {
    rest_ = required(device, weights_size(size, kWhole), "the last weights of " + name);
    rest_weights_ = static_cast<float*>(
        device.memory.device(static_cast<std::size_t>(kWhole * size.inputs) * sizeof(float), "last weights"));
  }
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
  if (rest_) rest_of_weights(device, x, dy, dw, adds);
  if (of_bias == nullptr) return;
  if (rows == Rows::summed)
    sums_->finish(device, 0, of_bias, adds);
  else
    sums_->sum(device, dy, size_.rows, of_bias, adds);
}

void SequenceProduct::rest_of_weights(Device& device, const void* x, const void* dy, float* dw,
                                      bool adds) const {
  const std::int64_t whole = whole_outputs(size_);
  const char* const from = static_cast<const char*>(dy) + static_cast<std::size_t>(whole) * device.size();
  rest_->run(device, {x, from, rest_weights_}, 0);
  take(device, dw + whole * size_.inputs, rest_weights_, rest_outputs(size_) * size_.inputs, adds);
}

void SequenceProduct::data(Device& device, const void* w, const void* dy, void* dx, bool adds,
                           void* inner) const {
  if (inner != nullptr && inner_ && !adds)
    return inner_->run(device, {w, dy, dx, nullptr, nullptr, inner}, 0);
  data_.run(device, {w, dy, dx}, adds ? 1.0F : 0.0F);
}

}  // namespace dlrun::cuda
