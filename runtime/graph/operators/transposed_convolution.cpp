// Transposed convolution: the weights are those of the convolution that it turns round, from the output to
// the input, as PyTorch has them.
#include <fmt/format.h>

#include "runtime/graph/operators/layer_settings.hpp"
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

namespace {

Result<Operation> read(yaml::Fields& fields, const yaml::Node& value) {
  op::TransposedConvolution out;
  out.filters = TRY(yaml::as_integer(value, fields.path("transposed-convolution"), 1, kMaxOutputs));
  out.kernel = TRY(fields.integer_or("kernel", 1, 1, kMaxWindow));
  out.stride = TRY(fields.integer_or("stride", 1, 1, kMaxWindow));
  out.padding = TRY(fields.integer_or("padding", 0, 0, kMaxWindow));
  out.output_padding = TRY(fields.integer_or("output-padding", 0, 0, out.stride - 1));
  out.bias = TRY(fields.bool_or("bias", true)) ? Bias::learned : Bias::none;
  return Operation(out);
}

Shape shape(const op::TransposedConvolution& spec, ShapeContext& in) {
  constexpr std::int64_t kExtent = 1 << 14;
  const auto extent = [&spec](std::int64_t pixels) {
    return (pixels - 1) * spec.stride - 2 * spec.padding + spec.kernel + spec.output_padding;
  };
  Shape to{spec.filters, extent(in.inputs[0].height), extent(in.inputs[0].width)};
  if (to.height < 1 || to.width < 1 || to.height > kExtent || to.width > kExtent) {
    in.refuse(fmt::format("{} would make an image of {} x {}", in.name, to.height, to.width));
    to.height = to.width = 1;
  }
  if (spec.output_padding >= spec.stride)
    in.refuse(fmt::format("{} has an output padding of {}, not less than its stride of {}", in.name,
                          spec.output_padding, spec.stride));
  return to;
}

std::vector<ParameterRule> parameters(const op::TransposedConvolution& spec, const Shape& from) {
  auto weights =
      filters({from.channels, spec.filters, spec.kernel, spec.kernel}, spec.filters, spec.init_std);
  return spec.bias == Bias::none ? weights : with_bias(std::move(weights), spec.filters, spec.init_std);
}

}  // namespace

const OperatorTraits& transposed_convolution_traits() {
  static const OperatorTraits row{
      .name = "transposed convolution",
      .layer = {.name = "transposed-convolution",
                .other_names = {"convtranspose2d", "conv2d-transpose", "conv-transpose", "deconv",
                                "deconvolution"},
                .read = read},
      .shape =
          shape_by([](const op::TransposedConvolution& spec, ShapeContext& in) { return shape(spec, in); }),
      .parameters =
          by([](const op::TransposedConvolution& spec, const Shape& from) { return parameters(spec, from); }),
      .products = by([](const op::TransposedConvolution& spec, const Shape& from, const Shape&) {
        return from.elements() * spec.filters * spec.kernel * spec.kernel;
      }),
      .onnx = by([](const op::TransposedConvolution& spec) {
        return OnnxForm{.type = "ConvTranspose",
                        .attributes = {{"kernel_shape", std::vector{spec.kernel, spec.kernel}},
                                       {"strides", std::vector{spec.stride, spec.stride}},
                                       {"pads", std::vector(4, spec.padding)},
                                       {"output_padding", std::vector(2, spec.output_padding)}}};
      }),
      .backward_reads_input = true,
      .backward_reads_output = true};
  return row;
}

}  // namespace dlrun::runtime
