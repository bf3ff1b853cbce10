// Convolution, in groups where the settings say so.
#include <fmt/format.h>

#include "runtime/graph/operators/layer_settings.hpp"
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

namespace {

Result<Operation> read(yaml::Fields& fields, const yaml::Node& value) {
  op::Convolution out;
  out.filters = TRY(yaml::as_integer(value, fields.path("convolution"), 1, kMaxOutputs));
  std::tie(out.kernel, out.kernel_width) = TRY(read_pair(fields, "kernel", 1, 1));
  std::tie(out.padding, out.padding_width) = TRY(read_pair(fields, "padding", 0, 0));
  out.stride = TRY(fields.integer_or("stride", 1, 1, kMaxWindow));
  out.groups = TRY(fields.integer_or("groups", 1, 1, kMaxOutputs));
  out.bias = TRY(fields.bool_or("bias", true)) ? Bias::learned : Bias::none;
  return Operation(out);
}

Shape shape(const op::Convolution& spec, ShapeContext& in) {
  const Shape from = in.inputs[0];
  const Window window{spec.kernel, spec.stride, spec.padding};
  Shape to = windowed_shape(in, in.name, spec.filters, window);
  if (from.axes == Axes::volume && (spec.kernel != spec.kernel_width || spec.padding != spec.padding_width))
    in.refuse(fmt::format("{} moves over a volume, where windows are cubes: write one number for the kernel",
                          in.name));
  if (spec.kernel != spec.kernel_width || spec.padding != spec.padding_width)
    to.width = windowed(in, in.name, from.width, {spec.kernel_width, spec.stride, spec.padding_width});
  if (spec.groups < 1 || from.channels % spec.groups != 0 || spec.filters % spec.groups != 0)
    in.refuse(fmt::format("{} cannot divide {} channels and {} filters into {} groups", in.name,
                          from.channels, spec.filters, spec.groups));
  return to;
}

std::vector<ParameterRule> parameters(const op::Convolution& spec, const Shape& from) {
  const std::int64_t channels = from.channels / spec.groups;
  std::vector<std::int64_t> shape{spec.filters, channels, spec.kernel, spec.kernel_width};
  if (from.axes == Axes::volume) shape.insert(shape.begin() + 2, spec.kernel);
  auto weights = filters(std::move(shape), channels, spec.init_std);
  return spec.bias == Bias::none ? weights : with_bias(std::move(weights), spec.filters, spec.init_std);
}

}  // namespace

const OperatorTraits& convolution_traits() {
  static const OperatorTraits row{
      .name = "convolution",
      .layer = {.name = "convolution", .other_names = {"conv", "conv2d"}, .read = read},
      .shape = shape_by([](const op::Convolution& spec, ShapeContext& in) { return shape(spec, in); }),
      .parameters = by([](const op::Convolution& spec, const Shape& from) { return parameters(spec, from); }),
      .products = by([](const op::Convolution& spec, const Shape& from, const Shape& to) {
        const std::int64_t deep = from.axes == Axes::volume ? spec.kernel : 1;
        return to.elements() * (from.channels / spec.groups) * deep * spec.kernel * spec.kernel_width;
      }),
      .onnx = by([](const op::Convolution& spec) {
        return OnnxForm{.type = "Conv",
                        .attributes = {{"kernel_shape", std::vector{spec.kernel, spec.kernel_width}},
                                       {"strides", std::vector{spec.stride, spec.stride}},
                                       {"pads", std::vector{spec.padding, spec.padding_width, spec.padding,
                                                            spec.padding_width}},
                                       {"group", spec.groups}}};
      }),
      .takes_volume = true,
      .backward_reads_input = true,
      .backward_reads_output = true};
  return row;
}

}  // namespace dlrun::runtime
