// See traits.hpp: the table, and what several rows share.
#include "runtime/graph/operators/traits.hpp"

#include <array>

#include <fmt/format.h>

#include "runtime/graph/init_bound.hpp"

namespace dlrun::runtime {

RandomRule random_of(const Operation& operation) {
  const auto rule = traits_of(operation).random;
  return rule == nullptr ? RandomRule{} : rule(operation);
}

std::span<const OperatorTraits* const> operators() {
#define DLRUN_ROW(TYPE, NAME) &NAME##_traits(),
  static const std::array<const OperatorTraits*, std::variant_size_v<Operation>> all{
      DLRUN_OPERATORS(DLRUN_ROW)};
#undef DLRUN_ROW
  return all;
}

const OperatorTraits& traits_of(const Operation& operation) {
  return *operators()[operation.index()];
}

Shape shape_of_input(Operation&, ShapeContext& in) {
  return in.inputs[0];
}

void expect_sequence(ShapeContext& in) {
  for (const Shape& from : in.inputs)
    if (from.axes != Axes::sequence)
      in.refuse(fmt::format("{} reads a sequence, not an image of {}", in.name.empty() ? "a layer" : in.name,
                            text(from)));
}

Shape shape_of_sequence(Operation&, ShapeContext& in) {
  expect_sequence(in);
  return in.inputs[0];
}

std::string text(const Shape& shape) {
  if (shape.axes == Axes::sequence) return fmt::format("{} x {}", shape.positions(), shape.features());
  if (shape.axes == Axes::volume)
    return fmt::format("{}x{}x{}x{}", shape.channels, shape.depth, shape.height, shape.width);
  return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
}

std::int64_t windowed(ShapeContext& in, std::string_view what, std::int64_t extent, const Window& window) {
  const std::int64_t seen = extent + 2 * window.padding;
  if (seen < window.size) {
    in.refuse(fmt::format("{} sees {} pixels, less than its window of {}", what, seen, window.size));
    return 1;
  }
  const std::int64_t room = seen - window.size, places = room / window.stride + 1;
  // A window that would begin beyond the image and its near padding sees nothing.
  const bool one_more = window.edge == Edge::kept && room % window.stride != 0 &&
                        places * window.stride < extent + window.padding;
  return places + (one_more ? 1 : 0);
}

Shape windowed_shape(ShapeContext& in, std::string_view what, std::int64_t channels, const Window& window) {
  const Shape from = in.inputs[0];
  Shape out = from;
  out.channels = channels;
  if (from.axes == Axes::volume) out.depth = windowed(in, what, from.depth, window);
  out.height = windowed(in, what, from.height, window);
  out.width = windowed(in, what, from.width, window);
  return out;
}

std::vector<ParameterRule> filters(std::vector<std::int64_t> shape, std::int64_t channels, float init_std) {
  std::int64_t each = 1;
  for (std::size_t axis = 1; axis < shape.size(); ++axis) each *= shape[axis];
  return {{".weight", std::move(shape), channels, init_bound(init_std, each)}};
}

std::vector<ParameterRule> with_bias(std::vector<ParameterRule> weights, std::int64_t outputs,
                                     float init_std) {
  weights.push_back({".bias", {outputs}, outputs, init_std > 0 ? 0 : weights[0].bound});
  return weights;
}

}  // namespace dlrun::runtime
