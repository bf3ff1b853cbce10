// The operators that models are made of: the settings of each, as plain data, and the table of them. What an
// operator means to a graph (shapes, parameters, names) is in operators/NAME.cpp; what a device does for it
// is in cpu/operators/NAME.cpp and cuda/plugin/NAME.cu. Read by CUDA code too: C++17.
#pragma once

#include <cstdint>
#include <variant>

#include "runtime/base/input_shape.hpp"

namespace dlrun::runtime {

// What the axes of a shape are: of an image; of a sequence, whose features are the channels and whose
// positions are the height (in memory the features of a position always lie side by side); or of a volume,
// which has a depth before its height.
enum class Axes { image, sequence, volume };

struct Shape {  // of one sample of the batch
  std::int64_t channels = 0, height = 1, width = 1;
  Axes axes = Axes::image;
  std::int64_t depth = 1;  // of a volume
  std::int64_t elements() const { return channels * depth * height * width; }
  std::int64_t features() const { return channels; }
  std::int64_t positions() const { return height; }
  friend bool operator==(const Shape& left, const Shape& right) {
    return left.channels == right.channels && left.height == right.height && left.width == right.width &&
           left.axes == right.axes && left.depth == right.depth;
  }
  friend bool operator!=(const Shape& left, const Shape& right) { return !(left == right); }
};

inline Shape sequence(std::int64_t positions, std::int64_t features) {
  return {features, positions, 1, Axes::sequence};
}

inline Shape volume(std::int64_t channels, std::int64_t depth, std::int64_t height, std::int64_t width) {
  return {channels, height, width, Axes::volume, depth};
}

// What follows an operator at once and is done in the same pass over memory.
enum class Activation { none, relu, leaky_relu, tanh };
enum class Bias { none, learned };
// Pixels left over at the far edge: too few for a window. kept: a window of what is there (Caffe's rule).
enum class Edge { dropped, kept };
enum class Padding { counts, ignored };
// How the ranks of a tensor group divide the weights of a layer, where a job has such groups: by its outputs
// (columns), or by its inputs (rows), whose products the ranks then sum. As Megatron-LM names them.
enum class SplitBy { none, columns, rows };

namespace op {
struct Input {
  SampleKind kind = SampleKind::image;  // as the data is
};
// Of a volume, windows are cubes: its depth is as its height.
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
  static constexpr std::int64_t kOnePerClass = 0;
  std::int64_t outputs = 1;  // kOnePerClass: as many as the data has classes
  Activation activation = Activation::none;
  float init_std = 0;  // standard deviation of the first weights; 0: PyTorch's default
  SplitBy split = SplitBy::none;
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
struct Reshape {
  Shape to;
};
// Normal random numbers, a function of seed, step and sample.
struct Noise {
  std::int64_t size = 1;
};
// The value as it is; nothing flows back through it.
struct Detach {};
struct SoftmaxCrossEntropy {
  float weight = 1;     // of its gradient: less than 1 for auxiliary heads, whose loss is not reported
  float smoothing = 0;  // in training: the part of the target that all classes share
};
// Of one logit. labels: 1 or 0 as the row's label says. The others are a GAN's: the discriminator's on real
// and on fake images, and the generator's, whose target is that its images are taken for real.
struct SigmoidCrossEntropy {
  enum class Target { labels, real, fake, generator };
  Target target = Target::labels;
};
// The end of a model that tells the numbers of a row's targets: a measure of their distance, as a mean over
// them. sigmoid: the cross-entropy of a logit for each of several labels, which are 1 or 0.
struct TargetLoss {
  enum class Measure { squared, absolute, huber, sigmoid };
  Measure measure = Measure::squared;
  float delta = 1;   // of huber: the distance from which on the loss grows as it does
  float weight = 1;  // of its gradient, as a SoftmaxCrossEntropy's
};
// x times the probability that a normal number is below x; tanh: an approximation of that.
struct Gelu {
  enum class Form { erf, tanh };
  Form form = Form::erf;
};

// Operators on sequences: positions x features.
// The features of each token of a vocabulary; where `positions` is set, plus those of each position.
struct Embedding {
  std::int64_t features = 1;
  std::int64_t vocabulary = 0;  // 0: as many as the data has
  std::int64_t positions = 0;   // rows of learned positions; 0: none are added
  float init_std = 0.02F;
};
// (x - mean) / sqrt(variance + epsilon) over the features of a position, scaled and shifted by learned ones.
struct LayerNorm {
  float epsilon = 1e-5F;
  Bias bias = Bias::learned;
};
// x / sqrt(mean of x squared + epsilon) over the features of a position, scaled by learned ones.
struct RmsNorm {
  float epsilon = 1e-5F;
};
// A fully connected layer of each position by itself.
struct Linear {
  std::int64_t outputs = 1;
  Bias bias = Bias::learned;
  float init_std = 0;  // standard deviation of the first weights; 0: PyTorch's default
  SplitBy split = SplitBy::none;
};
// silu(first input) times the second, with silu(x) = x / (1 + exp(-x)).
struct SwiGlu {};
// Causal attention: a position reads itself and those before it. Its input holds, one behind the other, the
// queries of all heads, the keys and the values of `key_heads` heads: (heads + 2 key_heads) x width features.
// Where key_heads is less, each serves heads / key_heads queries that follow each other.
struct Attention {
  std::int64_t heads = 1;
  std::int64_t key_heads = 0;  // 0: as many as there are heads
  float rotary_base = 0;       // of rotary positions, as Llama has them (halves turned); 0: none
  float dropout = 0;           // the probability with which a key counts nothing for a query, in training
  // Of a part of a model's heads, which draw the masks that they draw in the whole: the number of the first
  // one, and of all; 0: these are all.
  std::int64_t first_head = 0, all_heads = 0;
  std::int64_t total_heads() const { return all_heads == 0 ? heads : all_heads; }
  std::int64_t keys() const { return key_heads == 0 ? heads : key_heads; }
  std::int64_t width(std::int64_t features) const { return features / (heads + 2 * keys()); }
};
// The end of a language model: scores of the whole vocabulary for each position, and their softmax
// cross-entropy with the token that follows. A mean over the positions, summed over the rows. Its weights are
// an embedding's where it shares them. The scores of all positions are never in memory as f32.
struct VocabularyLoss {
  std::int64_t vocabulary = 0;  // 0: as many as the data has
  float init_std = 0.02F;
};

// Between whole and divided values of a tensor group (graph/split.hpp). The value as it is; backward sums its
// gradient over the group.
struct TensorCopy {};
// The sum of what the ranks of the group have; its gradient is each term's.
struct TensorSum {};

// The borders of a region that a tensor group divides, where the values between such regions are slices of
// the batch's positions (sequence parallelism: Korthikanti et al., "Reducing activation recomputation in
// large transformer models", 2022). The slices of all ranks, one behind the other; backward gives this rank's
// slice of the gradients' sum.
struct TensorGather {};
// This rank's slice of the sum of what the ranks have; backward gives the gradients of all slices.
struct TensorScatter {};

// The borders of a stage of a pipeline (graph/stages.hpp). What the stage before has sent; backward sends its
// gradient there. The rows that a batch has, which the first stage reads, are filled here, too.
struct StageInput {
  SampleKind kind = SampleKind::image;
  Shape rows = {};
};
// What goes to the stage behind, which sends its gradient.
struct StageOutput {};
}  // namespace op

// The table of operators: a row is the type of its settings and the name of its files. Graphs, both devices
// and users' lists of layers are made of it. New ones stand at the end: a row's number is part of a plan's
// hash.
#define DLRUN_OPERATORS(ROW)                         \
  ROW(Input, input)                                  \
  ROW(Convolution, convolution)                      \
  ROW(FullyConnected, fully_connected)               \
  ROW(MaxPool, max_pool)                             \
  ROW(AveragePool, average_pool)                     \
  ROW(GlobalAveragePool, global_average_pool)        \
  ROW(LocalResponseNorm, local_response_norm)        \
  ROW(BatchNorm, batch_norm)                         \
  ROW(Relu, relu)                                    \
  ROW(Dropout, dropout)                              \
  ROW(Add, add)                                      \
  ROW(Concat, concat)                                \
  ROW(Flatten, flatten)                              \
  ROW(SoftmaxCrossEntropy, softmax_cross_entropy)    \
  ROW(TransposedConvolution, transposed_convolution) \
  ROW(LeakyRelu, leaky_relu)                         \
  ROW(Tanh, tanh)                                    \
  ROW(Noise, noise)                                  \
  ROW(Detach, detach)                                \
  ROW(SigmoidCrossEntropy, sigmoid_cross_entropy)    \
  ROW(Reshape, reshape)                              \
  ROW(Gelu, gelu)                                    \
  ROW(Embedding, embedding)                          \
  ROW(LayerNorm, layer_norm)                         \
  ROW(RmsNorm, rms_norm)                             \
  ROW(Linear, linear)                                \
  ROW(SwiGlu, swiglu)                                \
  ROW(Attention, attention)                          \
  ROW(VocabularyLoss, vocabulary_loss)               \
  ROW(TargetLoss, target_loss)                       \
  ROW(TensorCopy, tensor_copy)                       \
  ROW(TensorSum, tensor_sum)                         \
  ROW(StageInput, stage_input)                       \
  ROW(StageOutput, stage_output)                     \
  ROW(TensorGather, tensor_gather)                   \
  ROW(TensorScatter, tensor_scatter)

namespace detail {
template <class Before, class... Listed>
struct AnyOf {
  using Type = std::variant<Listed...>;
};
}  // namespace detail

#define DLRUN_LISTED(TYPE, NAME) , op::TYPE
using Operation = detail::AnyOf<void DLRUN_OPERATORS(DLRUN_LISTED)>::Type;
#undef DLRUN_LISTED

}  // namespace dlrun::runtime
