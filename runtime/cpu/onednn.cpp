// Layout choice and call binding.
#include "runtime/cpu/onednn.hpp"

#include <array>

namespace dlrun::runtime {

DataType data_type(Precision precision) {
  return precision == Precision::bf16 ? DataType::bf16 : DataType::f32;
}

std::size_t size_of(DataType type) {
  return type == DataType::bf16 ? 2 : 4;
}

Tag tag_of(const Layout& layout, std::size_t dims) {
  constexpr std::size_t kOfVolume = 5;
  if (dims != kOfVolume) return layout.tag;
  if (layout.tag == Tag::nChw16c) return Tag::nCdhw16c;
  if (layout.tag == Tag::nChw8c) return Tag::nCdhw8c;
  return layout.tag == Tag::nhwc ? Tag::ndhwc : Tag::ncdhw;
}

Desc activation_desc(std::int64_t batch, const Shape& shape, DataType type, Layout layout) {
  if (shape.axes == Axes::sequence) return {{batch * shape.positions(), shape.features()}, type, Tag::nc};
  if (shape.axes == Axes::volume) {
    const Dims dims{batch, shape.channels, shape.depth, shape.height, shape.width};
    return {dims, type, tag_of(layout, dims.size())};
  }
  return {{batch, shape.channels, shape.height, shape.width}, type, layout.tag};
}

Extents extents(std::int64_t batch, const Shape& shape, Layout layout) {
  if (shape.axes == Axes::sequence) return {batch * shape.positions(), 1, 1, 1, shape.features()};
  const std::int64_t inner = layout.block == 0 ? shape.channels : layout.block;
  return {batch, (shape.channels + inner - 1) / inner, shape.depth * shape.height, shape.width, inner};
}

Layout preferred_layout(const dnnl::engine& engine, Precision precision) {
  const DataType type = data_type(precision);
  const Desc images = any_layout({1, 64, 8, 8}, type), weights = any_layout({64, 64, 3, 3}, type);
  const Dims ones{1, 1};
  const Desc answer = describe<dnnl::convolution_forward>(
                          engine, dnnl::primitive_attr(), dnnl::prop_kind::forward_training,
                          dnnl::algorithm::convolution_direct, images, weights, images, ones, ones, ones)
                          .dst_desc();
  static constexpr std::array kKnown = {Layout{Tag::nChw16c, 16}, Layout{Tag::nChw8c, 8},
                                        Layout{Tag::nhwc, 0}};
  for (const Layout& layout : kKnown)
    if (answer == Desc({1, 64, 8, 8}, type, layout.tag)) return layout;
  return {};
}

Desc vector_desc(std::int64_t elements) {
  return {{elements}, DataType::f32, Tag::x};
}

Desc any_layout(const Dims& dims, DataType type) {
  return {dims, type, Tag::any};
}

namespace {

void append(dnnl::post_ops& after, dnnl::algorithm algorithm, float alpha) {
#if DNNL_VERSION_MAJOR == 2
  after.append_eltwise(1.0F, algorithm, alpha, 0.0F);
#else
  after.append_eltwise(algorithm, alpha, 0.0F);
#endif
}

}  // namespace

dnnl::primitive_attr attributes(Activation activation, float slope) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (activation == Activation::none) return attributes;
  dnnl::post_ops after;
  if (activation == Activation::tanh)
    append(after, dnnl::algorithm::eltwise_tanh, 0);
  else
    append(after, dnnl::algorithm::eltwise_relu, activation == Activation::leaky_relu ? slope : 0);
  attributes.set_post_ops(after);
  return attributes;
}

std::string text(const Desc& desc) {
  const Blocking blocking = blocking_of(desc);
  std::string out = type_of(desc) == DataType::bf16 ? "bf16" : "f32";
  for (std::size_t axis = 0; axis < blocking.dims.size(); ++axis)
    out += fmt::format(" {}:{}", blocking.dims[axis], blocking.strides[axis]);
  for (std::size_t block = 0; block < blocking.inner_axes.size(); ++block)
    out += fmt::format(" /{}:{}", blocking.inner_axes[block], blocking.inner_blocks[block]);
  return out;
}

Desc with_type(const Desc& desc, DataType type) {
  if (type_of(desc) == type) return desc;
  if (const auto same = desc_of(blocking_of(desc), type)) return *same;
  throw dnnl::error(dnnl_unimplemented, "no such layout of another data type");
}

void Call::run(const dnnl::stream& stream) {
  if (bound_.empty())
    for (const auto& [index, argument] : arguments_)
      bound_.emplace(index, dnnl::memory(argument.first, stream.get_engine(), argument.second->data));
  primitive_.execute(stream, bound_);
}

}  // namespace dlrun::runtime
