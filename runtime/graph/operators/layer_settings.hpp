// Settings of layers that several operators have, as users write them.
#pragma once

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/graph/operators/traits.hpp"
#include "src/base/fields.hpp"

namespace dlrun::runtime {

inline constexpr std::int64_t kMaxOutputs = 1 << 20, kMaxWindow = 1 << 10;

/// 5, or [1, 7] for height and width.
Result<std::pair<std::int64_t, std::int64_t>> read_pair(yaml::Fields& fields, std::string_view key,
                                                        std::int64_t fallback, std::int64_t low);

/// The settings that both kinds of pooling have. Windows do not overlap where no stride is given.
template <class Pool>
Result<Pool> read_pool(yaml::Fields& fields, const yaml::Node& value, std::string_view name,
                       std::int64_t widest) {
  static const std::vector<std::string> edges{"drop", "keep"};
  Pool out;
  out.window = TRY(yaml::as_integer(value, fields.path(name), 1, widest));
  out.stride = TRY(fields.integer_or("stride", out.window, 1, kMaxWindow));
  out.padding = TRY(fields.integer_or("padding", 0, 0, out.window / 2));
  out.edge =
      TRY(fields.choice_or("edge", 0, edges)) == 0 ? decltype(out.edge)::dropped : decltype(out.edge)::kept;
  return out;
}

/// split: columns or rows, of a layer of weights.
Result<SplitBy> read_split(yaml::Fields& fields);
SplitForm form_of(SplitBy split);

/// For rows, of an operator with `outputs`: by columns a rank has a part of them, by rows all.
template <class Spec>
std::string divide_outputs(Operation& operation, const Shape&, const NodePart& part) {
  if (part.form != SplitForm::columns) return {};
  std::int64_t& outputs = std::get<Spec>(operation).outputs;
  if (outputs % part.parts != 0)
    return fmt::format("{} outputs cannot be divided by {}", outputs, part.parts);
  outputs /= part.parts;
  return {};
}
/// For rows, of an operator with a `vocabulary`: the first parts have one row more where it has a remainder.
template <class Spec>
std::string divide_vocabulary(Operation& operation, const Shape&, const NodePart& part) {
  std::int64_t& rows = std::get<Spec>(operation).vocabulary;
  if (rows < part.parts) return fmt::format("a vocabulary of {} is less than {}", rows, part.parts);
  rows = divided_sections(std::vector{rows}, part.part, part.parts)[0].count;
  return {};
}

/// A window that moves over an image, in ONNX.
template <class Pool>
OnnxForm onnx_pool(std::string_view type, const Pool& spec) {
  return {.type = type,
          .attributes = {{"kernel_shape", std::vector(2, spec.window)},
                         {"strides", std::vector(2, spec.stride)},
                         {"pads", std::vector(4, spec.padding)},
                         {"ceil_mode", std::int64_t{spec.edge == Edge::kept}}}};
}

}  // namespace dlrun::runtime
