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

Desc activation_desc(std::int64_t batch, const Shape& shape, DataType type, Layout layout) {
  return {{batch, shape.channels, shape.height, shape.width}, type, layout.tag};
}

Extents extents(std::int64_t batch, const Shape& shape, Layout layout) {
  const std::int64_t inner = layout.block == 0 ? shape.channels : layout.block;
  return {batch, (shape.channels + inner - 1) / inner, shape.height, shape.width, inner};
}

Layout preferred_layout(const dnnl::engine& engine, Precision precision) {
  const DataType type = data_type(precision);
  const dnnl::convolution_forward::desc question(
      dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, any_layout({1, 64, 8, 8}, type),
      any_layout({64, 64, 3, 3}, type), any_layout({1, 64, 8, 8}, type), {1, 1}, {1, 1}, {1, 1});
  const Desc answer = dnnl::convolution_forward::primitive_desc(question, engine).dst_desc();
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

dnnl::primitive_attr attributes(Activation activation, float slope) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (activation == Activation::none) return attributes;
  dnnl::post_ops after;
  if (activation == Activation::tanh)
    after.append_eltwise(1.0F, dnnl::algorithm::eltwise_tanh, 0.0F, 0.0F);
  else
    after.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu,
                         activation == Activation::leaky_relu ? slope : 0.0F, 0.0F);
  attributes.set_post_ops(after);
  return attributes;
}

bool same_layout(const Desc& left, const Desc& right) {
  dnnl_memory_desc_t retyped = left.data;
  retyped.data_type = right.data.data_type;
  return Desc(retyped) == right;
}

std::string text(const Desc& desc) {
  const auto& blocking = desc.data.format_desc.blocking;
  std::string out = desc.data.data_type == dnnl_bf16 ? "bf16" : "f32";
  for (int axis = 0; axis < desc.data.ndims; ++axis)
    out += fmt::format(" {}:{}", desc.data.dims[axis], blocking.strides[axis]);
  for (int block = 0; block < blocking.inner_nblks; ++block)
    out += fmt::format(" /{}:{}", blocking.inner_idxs[block], blocking.inner_blks[block]);
  return out;
}

void Call::run(const dnnl::stream& stream) {
  if (bound_.empty())
    for (const auto& [index, argument] : arguments_)
      bound_.emplace(index, dnnl::memory(argument.first, stream.get_engine(), argument.second->data));
  primitive_.execute(stream, bound_);
}

}  // namespace dlrun::runtime
