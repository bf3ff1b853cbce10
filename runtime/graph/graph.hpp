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

#include "runtime/base/input_shape.hpp"
#include "src/base/result.hpp"
#include "src/base/strong.hpp"

namespace dlrun::runtime {

struct Shape {  // of one image of the batch
  std::int64_t channels = 0, height = 1, width = 1;
  std::int64_t elements() const { return channels * height * width; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

// What follows an operator at once and is done in the same pass over memory.
enum class Activation { none, relu, leaky_relu, tanh };
enum class Bias { none, learned };
// Pixels left over at the far edge: too few for a window. kept: a window of what is there (Caffe's rule).
enum class Edge { dropped, kept };
enum class Padding { counts, ignored };

namespace op {
struct Input {};
struct Convolution {
  std::int64_t filters = 1, kernel = 1, stride = 1, padding = 0;
  Bias bias = Bias::learned;
  Activation activation = Activation::none;
  // Of the width, where it is not as the height: 1x7 is {.kernel = 1, .kernel_width = 7, .padding_width = 3}.
  std::int64_t kernel_width = kernel, padding_width = padding;
  std::int64_t groups = 1;  // each sees its part of the channels and makes its part of the filters
  float slope = 0.2F;       // of a fused leaky ReLU where its input is negative
  float init_std = 0;       // standard deviation of the first weights; 0: PyTorch's default
};
// A convolution turned round: each input pixel is spread over a window of the output, `stride` apart.
struct TransposedConvolution {
  std::int64_t filters = 1, kernel = 1, stride = 1, padding = 0;
  std::int64_t output_padding = 0;  // rows and columns more at the far edge; less than the stride
  Bias bias = Bias::learned;
  Activation activation = Activation::none;
  float slope = 0.2F, init_std = 0;  // as a convolution's
};
struct FullyConnected {
  std::int64_t outputs = 1;
  Activation activation = Activation::none;
  float init_std = 0;  // standard deviation of the first weights; 0: PyTorch's default
};
struct MaxPool {
  std::int64_t window = 2, stride = 2, padding = 0;
  Activation activation = Activation::none;
  Edge edge = Edge::dropped;
};
struct AveragePool {
  std::int64_t window = 2, stride = 2, padding = 0;
  Edge edge = Edge::dropped;
  Padding counted = Padding::counts;  // in the mean: the padding's zeros too, or the image's pixels alone
};
struct GlobalAveragePool {};
// Across channels: x / (bias + alpha / size * sum of squares over `size` channels) ^ beta, as AlexNet has it.
struct LocalResponseNorm {
  std::int64_t size = 5;
  float alpha = 1e-4F, beta = 0.75F, bias = 1;
};
struct Concat {};  // the channels of its inputs, one behind the other
struct BatchNorm {
  float epsilon = 1e-5F;
  float momentum = 0.1F;  // weight of the new batch in the running statistics
  Activation activation = Activation::none;
  float init_std = 0;  // standard deviation of the first scales around 1
};
struct Relu {};
struct LeakyRelu {
  float slope = 0.2F;  // where the input is negative
};
struct Tanh {};
struct Dropout {
  float probability = 0.5F;  // of a zero
};
struct Add {
  Activation activation = Activation::none;
};
struct Flatten {};
// What a fully connected layer gives, seen as an image: channels, then height, then width.
struct Reshape {};
// Normal random numbers, a function of seed, step and sample.
struct Noise {};
// The value as it is; nothing flows back through it.
struct Detach {};
struct SoftmaxCrossEntropy {
  float weight = 1;  // of its gradient: less than 1 for auxiliary heads, whose loss is not reported
};
// Of one logit. labels: 1 or 0 as the row's label says. The others are a GAN's: the discriminator's on real
// and on fake images, and the generator's, whose target is that its images are taken for real.
struct SigmoidCrossEntropy {
  enum class Target { labels, real, fake, generator };
  Target target = Target::labels;
};
}  // namespace op

using Operation =
    std::variant<op::Input, op::Convolution, op::FullyConnected, op::MaxPool, op::AveragePool,
                 op::GlobalAveragePool, op::LocalResponseNorm, op::BatchNorm, op::Relu, op::Dropout, op::Add,
                 op::Concat, op::Flatten, op::SoftmaxCrossEntropy, op::TransposedConvolution, op::LeakyRelu,
                 op::Tanh, op::Noise, op::Detach, op::SigmoidCrossEntropy, op::Reshape>;

// A value is the output of the node with that index.
using Value = Strong<struct ValueTag, std::size_t>;

// Whose the parameters of a node are. shared: those of the node of that name before it, and its gradient adds
// to theirs. frozen: those too, but they learn nothing from it, nor do batch norm's running statistics.
enum class Weights { own, shared, frozen };

struct Node {
  std::string name;  // the prefix of its tensors' names; empty where it has none
  Operation operation;
  std::vector<Value> inputs;
  Shape shape;  // of its output
  Weights weights = Weights::own;
};

struct Graph {
  std::string model;
  std::vector<Node> nodes;  // each reads only values of nodes before it
};

// The nodes that read each value.
std::vector<std::vector<std::size_t>> readers(const Graph& graph);
std::string operation_name(const Operation& operation);
bool is_loss(const Node& node);
// Learned numbers: weights, biases, batch norm's scales and shifts.
std::int64_t parameter_count(const Graph& graph);

class GraphBuilder {
 public:
  GraphBuilder(std::string model, const InputShape& input);

  Value input() const { return Value(0); }
  Value convolution(std::string name, Value in, const op::Convolution& spec);
  Value transposed_convolution(std::string name, Value in, const op::TransposedConvolution& spec);
  Value fully_connected(std::string name, Value in, std::int64_t outputs);
  Value fully_connected(std::string name, Value in, const op::FullyConnected& spec);
  Value max_pool(Value in, const op::MaxPool& spec);
  Value average_pool(Value in, const op::AveragePool& spec);
  Value global_average_pool(Value in);
  Value local_response_norm(Value in, const op::LocalResponseNorm& spec);
  Value batch_norm(std::string name, Value in, const op::BatchNorm& spec = {});
  Value relu(Value in);
  Value leaky_relu(Value in, float slope);
  Value tanh(Value in);
  Value noise(std::int64_t size);
  Value detach(Value in);
  Value reshape(Value in, const Shape& to);
  Value dropout(Value in, float probability);
  Value add(Value left, Value right);
  Value concat(std::vector<Value> parts);
  Value flatten(Value in);
  // A head that helps training: its gradient counts `weight` times, its loss is not reported.
  void auxiliary_loss(Value scores, float weight);
  // The end: scores of each class in, mean loss out.
  void softmax_cross_entropy(Value scores);
  // The end of a model of two classes, or one of a GAN's three losses.
  void sigmoid_cross_entropy(Value logit, op::SigmoidCrossEntropy::Target target);
  // Of the nodes that follow.
  void use_weights(Weights weights) { weights_ = weights; }

  const Shape& shape(Value value) const { return graph_.nodes[value.get()].shape; }
  Result<Graph> finish() &&;

 private:
  Value append(std::string name, Operation operation, std::vector<Value> inputs, Shape shape);
  std::int64_t windowed(const char* what, std::int64_t extent, std::int64_t window, std::int64_t stride,
                        std::int64_t padding, Edge edge = Edge::dropped);
  template <class Spec>
  Shape pooled(const char* what, Value in, const Spec& spec);
  void check_scores(Value scores);
  void check_shared(const Node& node);
  void refuse(std::string what);

  InputShape input_;
  Graph graph_;
  Weights weights_ = Weights::own;
  std::optional<Error> error_;
};

}  // namespace dlrun::runtime
