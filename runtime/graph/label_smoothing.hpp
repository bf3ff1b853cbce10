// Label smoothing (Szegedy et al., "Rethinking the Inception architecture for computer vision", 2016, section
// 7): in training, the target of a row's label is 1 - s + s / K and that of every other of K classes s / K,
// as PyTorch's CrossEntropyLoss has it. Evaluations are as without it.
#pragma once

#include "runtime/graph/graph.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

/// Of all softmax losses of the graph, those of auxiliary heads included. An Error where it has none.
Result<void> smooth_labels(Graph& graph, double smoothing);

/// An Error where the graph has no softmax loss, for settings of its targets; `key` is the job file's.
Result<void> check_softmax_loss(const Graph& graph, std::string_view key);

}  // namespace dlrun::runtime
