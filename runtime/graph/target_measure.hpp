// What is measured between a model's numbers and their targets, as a job file names it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

/// The names of the measures, in the order of op::TargetLoss::Measure.
const std::vector<std::string>& target_measures();

struct TargetMeasure {
  op::TargetLoss::Measure measure = op::TargetLoss::Measure::squared;
  double delta = 1;  // of huber

  bool is_labels() const { return measure == op::TargetLoss::Measure::sigmoid; }
  /// "huber 0.5": as settings of a checkpoint have it.
  std::string text() const;
  /// An Error where `text` is none.
  static Result<TargetMeasure> of_text(const std::string& text);
};

/// Sets the measure of all target losses of the model.
void set_measure(Graph& graph, const TargetMeasure& measure);

/// An Error where the model does not end in a loss over targets: a GAN, or a list of layers with a loss of
/// its own.
Result<void> check_target_loss(const Graph& graph);

}  // namespace dlrun::runtime
