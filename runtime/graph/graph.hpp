// Graph: a model as a list of operators on values, in the order of the forward pass. Pure data: it knows
// shapes and names but no memory, no precision and no oneDNN; compile() (plan.hpp) makes an Engine of it.
// GraphBuilder is what models are written in. A wrong shape does not throw: it is kept and finish() reports
// the first one, so that builders read as plain lists of layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/graph/engine.hpp"
#include "src/base/result.hpp"
#include "src/base/strong.hpp"

namespace dlrun::runtime {

struct Shape {  // of one image of the batch
  std::int64_t channels = 0, height = 1, width = 1;
  std::int64_t elements() const { return channels * height * width; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

// What follows an operator at once and is done in the same pass over memory.
enum class Activation { none, relu };
enum class Bias { none, learned };

namespace op {
struct Input {};
struct Convolution {
  std::int64_t filters = 1, kernel = 1, stride = 1, padding = 0;
  Bias bias = Bias::learned;
  Activation activation = Activation::none;
};
struct FullyConnected {
  std::int64_t outputs = 1;
  Activation activation = Activation::none;
};
struct MaxPool {
  std::int64_t window = 2, stride = 2, padding = 0;
  Activation activation = Activation::none;
};
struct GlobalAveragePool {};
struct BatchNorm {
  float epsilon = 1e-5F;
  float momentum = 0.1F;  // share of the new batch in the running statistics
  Activation activation = Activation::none;
};
struct Relu {};
struct Dropout {
  float probability = 0.5F;  // of a zero
};
struct Add {
  Activation activation = Activation::none;
};
struct Flatten {};
struct SoftmaxCrossEntropy {};
}  // namespace op

using Operation =
    std::variant<op::Input, op::Convolution, op::FullyConnected, op::MaxPool, op::GlobalAveragePool,
                 op::BatchNorm, op::Relu, op::Dropout, op::Add, op::Flatten, op::SoftmaxCrossEntropy>;

// A value is the output of the node with that index.
using Value = Strong<struct ValueTag, std::size_t>;

struct Node {
  std::string name;  // the prefix of its tensors' names; empty where it has none
  Operation operation;
  std::vector<Value> inputs;
  Shape shape;  // of its output
};

struct Graph {
  std::string model;
  std::vector<Node> nodes;  // each reads only values of nodes before it
};

// The nodes that read each value.
std::vector<std::vector<std::size_t>> readers(const Graph& graph);
std::string operation_name(const Operation& operation);

class GraphBuilder {
 public:
  GraphBuilder(std::string model, const InputShape& input);

  Value input() const { return Value(0); }
  Value convolution(std::string name, Value in, const op::Convolution& spec);
  Value fully_connected(std::string name, Value in, std::int64_t outputs);
  Value max_pool(Value in, const op::MaxPool& spec);
  Value global_average_pool(Value in);
  Value batch_norm(std::string name, Value in, const op::BatchNorm& spec = {});
  Value relu(Value in);
  Value dropout(Value in, float probability);
  Value add(Value left, Value right);
  Value flatten(Value in);
  // The end: scores of each class in, mean loss out.
  void softmax_cross_entropy(Value scores);

  const Shape& shape(Value value) const { return graph_.nodes[value.get()].shape; }
  Result<Graph> finish() &&;

 private:
  Value append(std::string name, Operation operation, std::vector<Value> inputs, Shape shape);
  std::int64_t windowed(const char* what, std::int64_t extent, std::int64_t window, std::int64_t stride,
                        std::int64_t padding);
  void refuse(std::string what);

  InputShape input_;
  Graph graph_;
  std::optional<Error> error_;
};

}  // namespace dlrun::runtime
