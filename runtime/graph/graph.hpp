// Graph: a model as a list of operators on values, in the order of the forward pass. Pure data: it knows
// shapes and names but no memory, no precision and no oneDNN; compile() (plan.hpp) makes an Engine of it.
// GraphBuilder is what models are written in. A wrong shape does not throw: it is kept and finish() reports
// the first one, so that builders read as plain lists of layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/input_shape.hpp"
#include "runtime/graph/operations.hpp"
#include "src/base/result.hpp"
#include "src/base/strong.hpp"

namespace dlrun::runtime {

struct ParameterRule;
struct StatisticRule;

// A value is the output of the node with that index.
using Value = Strong<struct ValueTag, std::size_t>;

// Whose the parameters of a node are. shared: those of the node of that name before it, and its gradient adds
// to theirs. frozen: those too, but they learn nothing from it, nor do batch norm's running statistics. tied:
// a copy of those of a node of that name in another stage of a pipeline; the stages add their gradients.
enum class Weights { own, shared, frozen, tied };

// How an operator takes part in what a tensor group divides.
enum class SplitForm {
  whole,       // reads and gives whole values
  follows,     // each feature by itself: gives divided features where it reads some
  columns,     // reads whole values, gives its part of the features
  rows,        // reads its part of the features, gives a term of a sum
  heads,       // reads and gives its part of the heads
  positions,   // each position by itself: reads and gives its slice of the batch's
  vocabulary,  // has a part of a table's rows; what it gives is a term of a sum, or the loss
};

// A node of which a rank has one part of several: what it is in the whole model.
struct NodePart {
  SplitForm form = SplitForm::whole;
  int part = 0, parts = 1;
  Operation whole = {};
  Shape from = {};                          // its first input there
  std::vector<std::int64_t> sections = {};  // of its outputs: each is divided by itself
};

struct Node {
  std::string name;  // the prefix of its tensors' names; empty where it has none
  Operation operation;
  std::vector<Value> inputs;
  Shape shape;  // of its output
  Weights weights = Weights::own;
  std::optional<NodePart> part = {};
};

// Where a graph is one stage of several (graph/stages.hpp): what is before it, and the parameters that it and
// another stage both have.
struct StageFacts {
  std::size_t dropouts_before = 0;
  std::vector<std::string> tied = {};
};

struct Graph {
  std::string model;
  std::vector<Node> nodes;  // each reads only values of nodes before it
  std::optional<StageFacts> stage = {};
};

// The nodes that read each value.
std::vector<std::vector<std::size_t>> readers(const Graph& graph);
// Its name in reports and messages.
std::string operation_name(const Operation& operation);
bool is_loss(const Node& node);
// What an operator learns, and what it keeps otherwise.
std::vector<ParameterRule> parameters_of(const Graph& graph, const Node& node);
std::vector<StatisticRule> statistics_of(const Graph& graph, const Node& node);
// Learned numbers: weights, biases, batch norm's scales and shifts.
std::int64_t parameter_count(const Graph& graph);

class GraphBuilder {
 public:
  GraphBuilder(std::string model, const InputShape& input);

  Value input() const { return Value(0); }
  /// Any operator on these values. `name` is the prefix of its tensors' names; empty where it has none.
  Value apply(std::string name, const Operation& operation, std::vector<Value> inputs);
  Value apply(const Operation& operation, std::vector<Value> inputs) {
    return apply("", operation, std::move(inputs));
  }

  // The same in fewer words, for the operators that models have most.
  Value convolution(std::string name, Value in, const op::Convolution& spec) {
    return apply(std::move(name), spec, {in});
  }
  Value transposed_convolution(std::string name, Value in, const op::TransposedConvolution& spec) {
    return apply(std::move(name), spec, {in});
  }
  Value fully_connected(std::string name, Value in, std::int64_t outputs) {
    return apply(std::move(name), op::FullyConnected{.outputs = outputs}, {in});
  }
  Value fully_connected(std::string name, Value in, const op::FullyConnected& spec) {
    return apply(std::move(name), spec, {in});
  }
  Value max_pool(Value in, const op::MaxPool& spec) { return apply(spec, {in}); }
  Value average_pool(Value in, const op::AveragePool& spec) { return apply(spec, {in}); }
  Value global_average_pool(Value in) { return apply(op::GlobalAveragePool{}, {in}); }
  Value local_response_norm(Value in, const op::LocalResponseNorm& spec) { return apply(spec, {in}); }
  Value batch_norm(std::string name, Value in, const op::BatchNorm& spec = {}) {
    return apply(std::move(name), spec, {in});
  }
  Value relu(Value in) { return apply(op::Relu{}, {in}); }
  Value leaky_relu(Value in, float slope) { return apply(op::LeakyRelu{slope}, {in}); }
  Value tanh(Value in) { return apply(op::Tanh{}, {in}); }
  Value noise(std::int64_t size) { return apply(op::Noise{size}, {}); }
  Value detach(Value in) { return apply(op::Detach{}, {in}); }
  Value reshape(Value in, const Shape& to) { return apply(op::Reshape{to}, {in}); }
  Value dropout(Value in, float probability) { return apply(op::Dropout{probability}, {in}); }
  Value add(Value left, Value right) { return apply(op::Add{}, {left, right}); }
  Value concat(std::vector<Value> parts) { return apply(op::Concat{}, std::move(parts)); }
  Value flatten(Value in) { return apply(op::Flatten{}, {in}); }
  // A head that helps training: its gradient counts `weight` times, its loss is not reported.
  void auxiliary_loss(Value scores, float weight) {
    if (input_.targets > 0)
      apply(op::TargetLoss{.weight = weight}, {scores});
    else
      apply(op::SoftmaxCrossEntropy{.weight = weight}, {scores});
  }
  // The end: scores of each class in, mean loss out. Where the data has targets, the numbers are these.
  void softmax_cross_entropy(Value scores) {
    if (input_.targets > 0)
      apply(op::TargetLoss{}, {scores});
    else
      apply(op::SoftmaxCrossEntropy{}, {scores});
  }
  // The end of a model of two classes, or one of a GAN's three losses.
  void sigmoid_cross_entropy(Value logit, op::SigmoidCrossEntropy::Target target) {
    apply(op::SigmoidCrossEntropy{target}, {logit});
  }
  // The same for sequences.
  Value embedding(std::string name, Value tokens, const op::Embedding& spec) {
    return apply(std::move(name), spec, {tokens});
  }
  Value layer_norm(std::string name, Value in, const op::LayerNorm& spec = {}) {
    return apply(std::move(name), spec, {in});
  }
  Value rms_norm(std::string name, Value in, const op::RmsNorm& spec = {}) {
    return apply(std::move(name), spec, {in});
  }
  Value linear(std::string name, Value in, const op::Linear& spec) {
    return apply(std::move(name), spec, {in});
  }
  Value swiglu(Value gate, Value up) { return apply(op::SwiGlu{}, {gate, up}); }
  Value attention(Value in, const op::Attention& spec) { return apply(spec, {in}); }
  // The end of a language model. `name`: of its weights, or of the embedding whose weights it shares.
  void vocabulary_loss(std::string name, Value in, const op::VocabularyLoss& spec, Weights weights) {
    use_weights(weights);
    apply(std::move(name), spec, {in});
  }
  // Of the nodes that follow.
  void use_weights(Weights weights) { weights_ = weights; }

  const Shape& shape(Value value) const { return graph_.nodes[value.get()].shape; }
  Result<Graph> finish() &&;

 private:
  void check_shared(const Node& node);
  bool owns_parameters_of(const Node& owner, const Node& node) const;
  void refuse(const std::string& what);

  InputShape input_;
  Graph graph_;
  Weights weights_ = Weights::own;
  std::optional<Error> error_;
};

}  // namespace dlrun::runtime
