// Plain loops in double, one function an operator.
#include "reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "reference_sequences.hpp"
#include "reference_volumes.hpp"
#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime::test {

namespace {

struct Machine {
  const Graph& graph;
  const State& state;
  const Batch& batch;
  Norm norm;
  std::int64_t rows;
  std::vector<Numbers> values;
  Outcome outcome;

  const Numbers& tensor(const Node& node, const char* part) const { return state.at(node.name + part); }
  const Shape& shape_of(const Node& node, std::size_t which) const {
    return graph.nodes[node.inputs[which].get()].shape;
  }

  const Numbers* tensor_or_none(const Node& node, const char* part) const {
    const auto found = state.find(node.name + part);
    return found == state.end() ? nullptr : &found->second;
  }
  const Numbers& in(const Node& node, std::size_t which = 0) const {
    return values[node.inputs[which].get()];
  }

  Numbers run(const Node& node, const op::Embedding&) {
    return reference_embedding(batch.tokens, tensor(node, ".weight"), tensor_or_none(node, ".positions"),
                               node.shape);
  }
  Numbers run(const Node& node, const op::LayerNorm& spec) {
    return reference_norm(in(node), tensor(node, ".weight"), tensor_or_none(node, ".bias"), spec.epsilon,
                          true);
  }
  Numbers run(const Node& node, const op::RmsNorm& spec) {
    return reference_norm(in(node), tensor(node, ".weight"), nullptr, spec.epsilon, false);
  }
  Numbers run(const Node& node, const op::Linear&) {
    return reference_linear(in(node), tensor(node, ".weight"), tensor_or_none(node, ".bias"),
                            shape_of(node, 0).features());
  }
  Numbers run(const Node& node, const op::SwiGlu&) { return reference_swiglu(in(node, 0), in(node, 1)); }
  Numbers run(const Node& node, const op::Attention& spec) {
    return reference_attention(in(node), spec, shape_of(node, 0), rows);
  }
  Numbers run(const Node& node, const op::VocabularyLoss& spec) {
    outcome.scores = reference_scores(in(node), tensor(node, ".weight"), shape_of(node, 0).features());
    const CrossEntropy sum = cross_entropy(outcome.scores, spec.vocabulary);
    outcome.correct = sum.correct;
    outcome.weighted_loss = outcome.loss_sum = sum.loss / static_cast<double>(batch.labels_per_row);
    return {};
  }

  Numbers run(const Node&, const op::Input&) { return {batch.images.begin(), batch.images.end()}; }

  Numbers run(const Node& node, const op::Convolution& spec) {
    const Shape& from = shape_of(node, 0);
    const Numbers& in = values[node.inputs[0].get()];
    const Numbers& weights = tensor(node, ".weight");
    if (from.axes == Axes::volume)
      return reference_volume_convolution(in, weights, tensor_or_none(node, ".bias"), from, node.shape, spec);
    const std::int64_t channels = from.channels / spec.groups, filters = spec.filters / spec.groups;
    Numbers out;
    for (std::int64_t n = 0; n < rows; ++n)
      for (std::int64_t o = 0; o < spec.filters; ++o)
        for (std::int64_t y = 0; y < node.shape.height; ++y)
          for (std::int64_t x = 0; x < node.shape.width; ++x) {
            double sum = spec.bias == Bias::learned ? tensor(node, ".bias")[o] : 0;
            for (std::int64_t c = 0; c < channels; ++c)
              for (std::int64_t i = 0; i < spec.kernel; ++i)
                for (std::int64_t j = 0; j < spec.kernel_width; ++j) {
                  const std::int64_t v = y * spec.stride - spec.padding + i,
                                     u = x * spec.stride - spec.padding_width + j;
                  if (v < 0 || v >= from.height || u < 0 || u >= from.width) continue;
                  const std::int64_t channel = o / filters * channels + c;
                  sum += weights[((o * channels + c) * spec.kernel + i) * spec.kernel_width + j] *
                         in[((n * from.channels + channel) * from.height + v) * from.width + u];
                }
            out.push_back(sum);
          }
    return out;
  }

  // Each input pixel is spread over its window, as the name says; not the plan's turned convolution.
  Numbers run(const Node& node, const op::TransposedConvolution& spec) {
    const Shape &from = shape_of(node, 0), &to = node.shape;
    const Numbers& in = values[node.inputs[0].get()];
    const Numbers& weights = tensor(node, ".weight");
    Numbers out(static_cast<std::size_t>(rows * to.elements()));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto plane = static_cast<std::int64_t>(i) / (to.height * to.width);
      out[i] = spec.bias == Bias::learned ? tensor(node, ".bias")[plane % to.channels] : 0;
    }
    for (std::int64_t n = 0; n < rows; ++n)
      for (std::int64_t c = 0; c < from.channels; ++c)
        for (std::int64_t y = 0; y < from.height; ++y)
          for (std::int64_t x = 0; x < from.width; ++x)
            for (std::int64_t o = 0; o < to.channels; ++o)
              for (std::int64_t i = 0; i < spec.kernel; ++i)
                for (std::int64_t j = 0; j < spec.kernel; ++j) {
                  const std::int64_t v = y * spec.stride - spec.padding + i,
                                     u = x * spec.stride - spec.padding + j;
                  if (v < 0 || v >= to.height || u < 0 || u >= to.width) continue;
                  out[((n * to.channels + o) * to.height + v) * to.width + u] +=
                      weights[((c * to.channels + o) * spec.kernel + i) * spec.kernel + j] *
                      in[((n * from.channels + c) * from.height + y) * from.width + x];
                }
    return out;
  }

  Numbers run(const Node& node, const op::LeakyRelu& spec) {
    Numbers out = values[node.inputs[0].get()];
    for (double& value : out) value *= value < 0 ? spec.slope : 1;
    return out;
  }
  Numbers run(const Node& node, const op::Tanh&) {
    Numbers out = values[node.inputs[0].get()];
    for (double& value : out) value = std::tanh(value);
    return out;
  }
  Numbers run(const Node& node, const op::Gelu& spec) {
    Numbers out = values[node.inputs[0].get()];
    for (double& x : out)
      x *= spec.form == op::Gelu::Form::erf
               ? (1 + std::erf(x / std::sqrt(2.0))) / 2
               : (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))) / 2;
    return out;
  }
  // Operators of sequences are compared with PyTorch alone.
  template <class Spec>
  Numbers run(const Node&, const Spec&) {
    throw std::logic_error("no reference for this operator");
  }
  // A GAN has no gradient of one sum: it is compared with PyTorch alone (pytorch_test.cpp).
  Numbers run(const Node&, const op::Noise&) { throw std::logic_error("no reference for a GAN"); }
  Numbers run(const Node& node, const op::Reshape&) { return values[node.inputs[0].get()]; }
  Numbers run(const Node&, const op::Detach&) { throw std::logic_error("no reference for a GAN"); }

  Numbers run(const Node& node, const op::SigmoidCrossEntropy&) {
    const Numbers& logits = outcome.scores = values[node.inputs[0].get()];
    for (std::int64_t n = 0; n < rows; ++n) {
      const std::int32_t label = batch.labels[n];
      if (label < 0) continue;
      const double share = 1 / (1 + std::exp(-logits[n]));
      outcome.loss_sum -= std::log(label == 1 ? share : 1 - share);
      outcome.correct += (share > 0.5) == (label == 1) ? 1 : 0;
    }
    outcome.weighted_loss = outcome.loss_sum;
    return {};
  }

  Numbers run(const Node& node, const op::FullyConnected& spec) {
    const std::int64_t inputs = shape_of(node, 0).elements();
    const Numbers& in = values[node.inputs[0].get()];
    Numbers out;
    for (std::int64_t n = 0; n < rows; ++n)
      for (std::int64_t o = 0; o < spec.outputs; ++o) {
        double sum = tensor(node, ".bias")[o];
        for (std::int64_t i = 0; i < inputs; ++i)
          sum += tensor(node, ".weight")[o * inputs + i] * in[n * inputs + i];
        out.push_back(sum);
      }
    return out;
  }

  Numbers run(const Node& node, const op::MaxPool& spec) {
    const Shape& from = shape_of(node, 0);
    const Numbers& in = values[node.inputs[0].get()];
    if (from.axes == Axes::volume)
      return reference_volume_pool(
          in, from, node.shape, {spec.window, spec.stride, spec.padding},
          [](const Numbers& voxels, std::size_t) { return *std::max_element(voxels.begin(), voxels.end()); });
    Numbers out;
    for (std::int64_t plane = 0; plane < rows * from.channels; ++plane)
      for (std::int64_t y = 0; y < node.shape.height; ++y)
        for (std::int64_t x = 0; x < node.shape.width; ++x) {
          double best = -std::numeric_limits<double>::infinity();
          for (std::int64_t i = 0; i < spec.window; ++i)
            for (std::int64_t j = 0; j < spec.window; ++j) {
              const std::int64_t v = y * spec.stride - spec.padding + i,
                                 u = x * spec.stride - spec.padding + j;
              if (v < 0 || v >= from.height || u < 0 || u >= from.width) continue;
              best = std::max(best, in[(plane * from.height + v) * from.width + u]);
            }
          out.push_back(best);
        }
    return out;
  }

  Numbers run(const Node& node, const op::AveragePool& spec) {
    const Shape& from = shape_of(node, 0);
    const Numbers& in = values[node.inputs[0].get()];
    const bool zeros_count = spec.counted == Padding::counts && spec.padding > 0;
    const auto mean = [](const Numbers& voxels, std::size_t zeros) {
      return std::accumulate(voxels.begin(), voxels.end(), 0.0) / static_cast<double>(voxels.size() + zeros);
    };
    if (from.axes == Axes::volume)
      return reference_volume_pool(
          in, from, node.shape, {spec.window, spec.stride, spec.padding},
          zeros_count ? +mean : +[](const Numbers& voxels, std::size_t) {
            return std::accumulate(voxels.begin(), voxels.end(), 0.0) / static_cast<double>(voxels.size());
          });
    Numbers out;
    for (std::int64_t plane = 0; plane < rows * from.channels; ++plane)
      for (std::int64_t y = 0; y < node.shape.height; ++y)
        for (std::int64_t x = 0; x < node.shape.width; ++x) {
          double sum = 0;
          std::int64_t pixels = 0;
          for (std::int64_t i = 0; i < spec.window; ++i)
            for (std::int64_t j = 0; j < spec.window; ++j) {
              const std::int64_t v = y * spec.stride - spec.padding + i,
                                 u = x * spec.stride - spec.padding + j;
              if (v < 0 || v >= from.height || u < 0 || u >= from.width) continue;
              sum += in[(plane * from.height + v) * from.width + u];
              ++pixels;
            }
          out.push_back(sum / static_cast<double>(zeros_count ? spec.window * spec.window : pixels));
        }
    return out;
  }

  Numbers run(const Node& node, const op::LocalResponseNorm& spec) {
    const Numbers& in = values[node.inputs[0].get()];
    const std::int64_t area = node.shape.height * node.shape.width, channels = node.shape.channels;
    Numbers out;
    for (std::int64_t n = 0; n < rows; ++n)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t pixel = 0; pixel < area; ++pixel) {
          double sum = 0;
          for (std::int64_t k = c - spec.size / 2; k <= c + (spec.size - 1) / 2; ++k)
            if (k >= 0 && k < channels) sum += std::pow(in[(n * channels + k) * area + pixel], 2);
          out.push_back(in[(n * channels + c) * area + pixel] /
                        std::pow(spec.bias + spec.alpha / static_cast<double>(spec.size) * sum, spec.beta));
        }
    return out;
  }

  Numbers run(const Node& node, const op::Concat&) {
    Numbers out;
    for (std::int64_t n = 0; n < rows; ++n)
      for (std::size_t which = 0; which < node.inputs.size(); ++which) {
        const Numbers& in = values[node.inputs[which].get()];
        const std::int64_t image = shape_of(node, which).elements();
        out.insert(out.end(), in.begin() + n * image, in.begin() + (n + 1) * image);
      }
    return out;
  }

  Numbers run(const Node& node, const op::GlobalAveragePool&) {
    const Shape& from = shape_of(node, 0);
    const Numbers& in = values[node.inputs[0].get()];
    const std::int64_t area = from.depth * from.height * from.width;
    Numbers out;
    for (std::int64_t plane = 0; plane < rows * from.channels; ++plane) {
      double sum = 0;
      for (std::int64_t i = 0; i < area; ++i) sum += in[plane * area + i];
      out.push_back(sum / static_cast<double>(area));
    }
    return out;
  }

  Numbers run(const Node& node, const op::BatchNorm& spec) {
    const Shape& shape = node.shape;
    Numbers out = values[node.inputs[0].get()];
    const std::int64_t area = shape.depth * shape.height * shape.width;
    for (std::int64_t c = 0; c < shape.channels; ++c) {
      const auto each = [&](auto body) {
        for (std::int64_t n = 0; n < rows; ++n)
          for (std::int64_t i = 0; i < area; ++i) body(out[(n * shape.channels + c) * area + i]);
      };
      double mean = 0, variance = 0;
      each([&](double& value) { mean += value; });
      mean /= static_cast<double>(rows * area);
      each([&](double& value) { variance += (value - mean) * (value - mean); });
      variance /= static_cast<double>(rows * area);
      outcome.batch_statistics[node.name + ".mean"].push_back(mean);
      outcome.batch_statistics[node.name + ".variance"].push_back(variance);
      if (norm == Norm::running) {
        mean = tensor(node, ".running_mean")[c];
        variance = tensor(node, ".running_var")[c];
      }
      const double factor = tensor(node, ".weight")[c] / std::sqrt(variance + spec.epsilon);
      each([&](double& value) { value = (value - mean) * factor + tensor(node, ".bias")[c]; });
    }
    return out;
  }

  Numbers run(const Node& node, const op::Relu&) {
    Numbers out = values[node.inputs[0].get()];
    for (double& value : out) value = std::max(value, 0.0);
    return out;
  }

  Numbers run(const Node& node, const op::Dropout&) { return values[node.inputs[0].get()]; }
  Numbers run(const Node& node, const op::Flatten&) { return values[node.inputs[0].get()]; }

  Numbers run(const Node& node, const op::Add&) {
    Numbers out = values[node.inputs[0].get()];
    const Numbers& right = values[node.inputs[1].get()];
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += right[i];
    return out;
  }

  struct CrossEntropy {
    double loss = 0;
    std::int64_t correct = 0;
  };
  CrossEntropy cross_entropy(const Numbers& scores, std::int64_t classes) const {
    CrossEntropy out;
    for (std::size_t n = 0; n < batch.labels.size(); ++n) {
      const std::int32_t label = batch.labels[n];
      if (label < 0) continue;
      const double* row = &scores[n * classes];
      double sum = 0;
      std::int64_t highest = 0;
      for (std::int64_t i = 0; i < classes; ++i) {
        sum += std::exp(row[i]);
        if (row[i] > row[highest]) highest = i;
      }
      out.loss += std::log(sum) - row[label];
      out.correct += highest == label ? 1 : 0;
    }
    return out;
  }

  static double measured(const op::TargetLoss& spec, double score, double target) {
    using Measure = op::TargetLoss::Measure;
    const double apart = std::abs(score - target), share = 1 / (1 + std::exp(-score));
    if (spec.measure == Measure::squared) return apart * apart;
    if (spec.measure == Measure::absolute) return apart;
    if (spec.measure == Measure::sigmoid)
      return -target * std::log(share) - (1 - target) * std::log(1 - share);
    return apart <= spec.delta ? apart * apart / 2 : spec.delta * (apart - spec.delta / 2.0);
  }

  Numbers run(const Node& node, const op::TargetLoss& spec) {
    outcome.scores = in(node);
    const auto width = static_cast<std::size_t>(shape_of(node, 0).channels);
    double loss = 0;
    for (std::size_t at = 0; at < outcome.scores.size(); ++at) {
      if (batch.labels[at / width] < 0) continue;
      const double score = outcome.scores[at], target = batch.targets[at];
      loss += measured(spec, score, target) / static_cast<double>(width);
      if (&node != &graph.nodes.back()) continue;  // an auxiliary head is not reported
      if (spec.measure == op::TargetLoss::Measure::sigmoid) {
        outcome.correct += (score > 0) == (target == 1) ? 1 : 0;
        outcome.found += score > 0 && target == 1 ? 1 : 0;
        outcome.marked += (score > 0 ? 1 : 0) + target;
      } else {
        outcome.absolute += std::abs(score - target) / static_cast<double>(width);
        outcome.squared += (score - target) * (score - target) / static_cast<double>(width);
      }
    }
    outcome.weighted_loss += spec.weight * loss;
    if (&node == &graph.nodes.back()) outcome.loss_sum += loss;
    return {};
  }

  Numbers run(const Node& node, const op::SoftmaxCrossEntropy& spec) {
    outcome.scores = in(node);
    const CrossEntropy sum = cross_entropy(outcome.scores, shape_of(node, 0).channels);
    outcome.weighted_loss += spec.weight * sum.loss;
    if (&node != &graph.nodes.back()) return {};  // an auxiliary head is not reported
    outcome.loss_sum += sum.loss;
    outcome.correct += sum.correct;
    return {};
  }
};

}  // namespace

Outcome run_reference(const Graph& graph, const State& state, const Batch& batch, Norm norm) {
  Machine machine{graph, state, batch, norm, batch.rows(), {}, {}};
  for (const Node& node : graph.nodes)
    machine.values.push_back(
        std::visit([&](const auto& spec) { return machine.run(node, spec); }, node.operation));
  return machine.outcome;
}

namespace {

constexpr std::size_t kDirections = 5;

// How much the number changes in that direction: -1, 0 or 1.
double component(std::size_t direction, std::size_t number, std::size_t of) {
  if (of <= kDirections) return direction == number ? 1 : 0;
  return (mix(direction * 7919 + 1, number) >> 63) == 0 ? 1 : -1;
}

}  // namespace

Numbers along_directions(const Numbers& gradient) {
  Numbers out(std::min(gradient.size(), kDirections), 0);
  for (std::size_t direction = 0; direction < out.size(); ++direction)
    for (std::size_t i = 0; i < gradient.size(); ++i)
      out[direction] += component(direction, i, gradient.size()) * gradient[i];
  return out;
}

Numbers reference_gradient(const Graph& graph, State state, const Batch& batch,
                           const std::string& parameter) {
  Numbers& values = state.at(parameter);
  const Numbers kept = values;
  // As far from where they were, however many move.
  const double step = 1e-5 / std::sqrt(static_cast<double>(values.size()));
  const auto loss = [&](std::size_t direction, double by) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = kept[i] + by * component(direction, i, values.size());
    return run_reference(graph, state, batch).weighted_loss;
  };
  Numbers gradient;
  for (std::size_t direction = 0; direction < std::min(kept.size(), kDirections); ++direction)
    gradient.push_back((loss(direction, step) - loss(direction, -step)) / (2 * step) /
                       static_cast<double>(batch.rows()));
  return gradient;
}

}  // namespace dlrun::runtime::test
