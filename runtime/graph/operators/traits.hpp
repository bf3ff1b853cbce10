// OperatorTraits: what an operator means to a graph, whatever computes it: its name, the shape of its output,
// its parameters, how users write it in a list of layers, what may be done together with it, and what its
// backward pass reads. Each operator has a row, in operators/NAME.cpp; builders, passes, devices and lists of
// layers read rows: none of them knows an operator by name. What a row does not say: how a device computes
// it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/input_shape.hpp"
#include "runtime/base/tensor_part.hpp"
#include "runtime/graph/graph.hpp"
#include "runtime/graph/operations.hpp"
#include "src/base/fields.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

/// How many values an operator reads.
enum class Inputs { none, one, two, two_or_more };

/// What the rule of a shape sees. A shape that cannot be is refused; the rule then goes on with any other
/// one, and GraphBuilder::finish() reports the first refusal of a model.
struct ShapeContext {
  std::string_view name;      // of the layer; empty where it has none
  std::vector<Shape> inputs;  // of the values that it reads
  bool reads_vector = false;  // the first of them is from an operator that gives vectors
  InputShape data = {};       // of the model
  std::vector<std::string> refusals = {};

  void refuse(std::string what) { refusals.push_back(std::move(what)); }
};

/// A window that moves over an image.
struct Window {
  std::int64_t size, stride, padding;
  Edge edge = Edge::dropped;
};
/// A volume or an image of so many channels, with the window moved over each side of `from`.
Shape windowed_shape(ShapeContext& in, std::string_view what, std::int64_t channels, const Window& window);
/// The number of places of the window over `extent` pixels; `what` is what refusals call it.
std::int64_t windowed(ShapeContext& in, std::string_view what, std::int64_t extent, const Window& window);
/// "channels x height x width", or "positions x features" of a sequence.
std::string text(const Shape& shape);

/// Refuses an input that is no sequence, for rows of operators on those.
void expect_sequence(ShapeContext& in);

/// A tensor that an operator learns.
struct ParameterRule {
  std::string_view part;              // of its name, behind the layer's: PyTorch's name
  std::vector<std::int64_t> shape;    // plain
  std::int64_t channels;              // that lie side by side: of an input pixel, or all of a vector
  float bound = 0, constant = 0;      // starts uniform in [-bound, bound), plus the constant
  std::optional<TensorPart> of = {};  // the whole tensor, where this is a part
};
/// Weights of shape[0] filters, each over `channels` of some pixels, and a number per output channel where
/// there is a bias.
std::vector<ParameterRule> filters(std::vector<std::int64_t> shape, std::int64_t channels, float init_std);
std::vector<ParameterRule> with_bias(std::vector<ParameterRule> weights, std::int64_t outputs,
                                     float init_std);

/// A tensor that an operator keeps from step to step and does not learn.
struct StatisticRule {
  std::string_view part;
  std::int64_t elements;
  float constant;  // its first value
};

/// How users write an operator in a list of layers.
struct LayerRule {
  std::string_view name = {};                      // empty: they cannot
  std::vector<std::string_view> other_names = {};  // of PyTorch, Keras and Caffe, for hints
  // The settings: `value` is what stands behind the name, the keys beside it are `fields`.
  Result<Operation> (*read)(yaml::Fields& fields, const yaml::Node& value) = nullptr;
};

/// An activation, and a leaky ReLU's slope.
struct ActivationRule {
  Activation activation;
  float slope = 0;
};

/// Random numbers of each step. mask: by layer, rank and number; samples: by the sample among all ranks'.
enum class Randomness { none, mask, samples };

struct RandomRule {
  Randomness of = Randomness::none;
  float probability = 0;
};

/// last: reported where it ends the model; others help training. each: all of a model are reported.
enum class LossKind { none, last, each };

/// A setting of an ONNX operator.
struct OnnxAttribute {
  std::string_view name;
  std::variant<std::int64_t, float, std::vector<std::int64_t>, std::string> value;
};
/// What an operator is in ONNX, in evaluation. Its inputs are the values, the parameters and the statistics
/// of the node, in the order of the rules.
struct OnnxForm {
  std::string_view type;
  std::vector<OnnxAttribute> attributes = {};
  int opset = 13;             // the oldest that has it so
  bool takes_matrix = false;  // one vector per sample
};

struct OperatorTraits {
  std::string_view name;  // in reports and error messages
  Inputs inputs = Inputs::one;
  LayerRule layer = {};
  // May complete settings that depend on the data.
  Shape (*shape)(Operation& operation, ShapeContext& in);
  // Null: there are none. `from`: the shape of the first input.
  std::vector<ParameterRule> (*parameters)(const Operation& operation, const Shape& from) = nullptr;
  std::vector<StatisticRule> (*statistics)(const Operation& operation, const Shape& from) = nullptr;
  // Multiplications of a forward pass of one sample, where those of weights and values are what it does.
  std::int64_t (*products)(const Operation& operation, const Shape& from, const Shape& to) = nullptr;

  OnnxForm (*onnx)(const Operation& operation) = nullptr;  // null: it has no form there

  // How values lie.
  bool takes_volume = false;    // reads the depth of one; others refuse it, but for those of any shape
  bool elementwise = false;     // takes any shape and leaves it
  bool by_position = false;     // of sequences: does the same to each position by itself
  bool takes_vector = false;    // reads its input as one vector of numbers
  bool gives_vector = false;    // and so gives one
  bool flattens = false;        // does nothing but that: left out before what takes any shape
  bool stops_gradient = false;  // the value as it lies; nothing flows back through it
  bool asks_gradient = false;   // of its value, without parameters before it

  // What may be done in the same pass over memory.
  ActivationRule (*activation)(const Operation& operation) = nullptr;  // which it is; null: none
  bool swaps_with_relu = false;                                        // a ReLU may as well come behind it
  bool keeps_relu = false;  // a ReLU costs nothing in its own pass: it does not swap

  // What backward reads of the forward pass: how long a GPU keeps it.
  bool backward_reads_input = false;
  bool backward_reads_output = false;  // where an activation was fused, or it is one

  // In a tensor group. Null: as an elementwise operator follows, others are whole.
  SplitForm (*split)(const Operation& operation) = nullptr;
  // Makes the operator that of one of so many parts; why that cannot be, else empty. `from`: the shape of the
  // first input in the whole model.
  std::string (*divide)(Operation& operation, const Shape& from, const NodePart& part) = nullptr;
  // Where it reads features in sections of which each is divided by itself.
  std::vector<std::int64_t> (*sections)(const Operation& operation, const Shape& from) = nullptr;

  // What it draws, and a mask with which probability; null: nothing.
  RandomRule (*random)(const Operation& operation) = nullptr;
  LossKind loss = LossKind::none;
  bool (*of_generator)(const Operation& operation) = nullptr;  // a loss: whether it is a GAN's generator's
  bool (*gives_scores)(const Operation& operation) = nullptr;  // whether it gives a score per class
};

// The rows: each in its operator's file.
#define DLRUN_DECLARE(TYPE, NAME) const OperatorTraits& NAME##_traits();
DLRUN_OPERATORS(DLRUN_DECLARE)
#undef DLRUN_DECLARE

/// The row of an operator.
const OperatorTraits& traits_of(const Operation& operation);
/// What it draws, by the rule of its row.
RandomRule random_of(const Operation& operation);
/// All of them, in the order of the table.
std::span<const OperatorTraits* const> operators();

/// For rows: the output has the shape of the input.
Shape shape_of_input(Operation& operation, ShapeContext& in);
/// For rows: the output has the shape of the input, which is a sequence.
Shape shape_of_sequence(Operation& operation, ShapeContext& in);
/// For rows: an operator without settings.
template <class Spec>
Result<Operation> read_plain(yaml::Fields&, const yaml::Node&) {
  return Operation(Spec{});
}

/// For rows: a function of an operator's own settings, as one of any operation that has them.
template <class Function, class Answer, class Spec, class... More>
constexpr auto typed(Answer (Function::*)(const Spec&, More...) const) {
  return +[](const Operation& operation, More... more) -> Answer {
    return Function{}(std::get<Spec>(operation), more...);
  };
}
template <class Function>
constexpr auto by(const Function&) {
  return typed<Function>(&Function::operator());
}
/// The same of a shape, which may complete the settings.
template <class Function, class Spec>
constexpr auto typed_shape(Shape (Function::*)(Spec&, ShapeContext&) const) {
  return +[](Operation& operation, ShapeContext& in) -> Shape {
    return Function{}(std::get<std::remove_const_t<Spec>>(operation), in);
  };
}
template <class Function>
constexpr auto shape_by(const Function&) {
  return typed_shape<Function>(&Function::operator());
}

}  // namespace dlrun::runtime
