// An independent reference: runs a Graph (not fused) in double with plain loops, in plain layout, and takes
// gradients by central differences. Slow and simple on purpose. Dropout is the identity here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/graph/graph.hpp"

namespace dlrun::runtime::test {

using Numbers = std::vector<double>;
using State = std::map<std::string, Numbers>;  // parameters by name, plain layout

struct Batch {
  std::vector<float> images;
  std::vector<std::int32_t> labels;       // one per row, or per token
  std::vector<std::int32_t> tokens = {};  // in place of images
  std::int64_t labels_per_row = 1;
  // Where labels are mixed: another of each row, and the weight of the first.
  std::vector<std::int32_t> other_labels = {};
  std::vector<float> own_weights = {};
  std::vector<float> targets = {};  // as many of each row; a label of 0 is a row that counts then

  std::int64_t rows() const { return static_cast<std::int64_t>(labels.size()) / labels_per_row; }
};

struct Outcome {
  double loss_sum = 0;
  double weighted_loss = 0;  // of all heads: what the gradient is of
  std::int64_t correct = 0;
  double absolute = 0, squared = 0, found = 0, marked = 0;  // sums over targets
  Numbers scores;
  State batch_statistics;  // "bn.mean", "bn.variance" (biased)
};

enum class Norm { batch, running };
Outcome run_reference(const Graph& graph, const State& state, const Batch& batch, Norm norm = Norm::batch);

// A gradient along a few directions in which all its parameter's numbers change at once, up or down by the
// same: a central difference of each number would take minutes. Of up to five numbers, each alone.
Numbers along_directions(const Numbers& gradient);

// d(mean loss) / d(parameter), by central differences, along the same directions.
Numbers reference_gradient(const Graph& graph, State state, const Batch& batch, const std::string& parameter);

}  // namespace dlrun::runtime::test
