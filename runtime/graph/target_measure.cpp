// See target_measure.hpp.
#include "runtime/graph/target_measure.hpp"

#include <algorithm>

#include "src/base/units.hpp"

namespace dlrun::runtime {

const std::vector<std::string>& target_measures() {
  static const std::vector<std::string> names{"mean-squared-error", "mean-absolute-error", "huber",
                                              "sigmoid-cross-entropy"};
  return names;
}

std::string TargetMeasure::text() const {
  const std::string& name = target_measures()[static_cast<std::size_t>(measure)];
  return measure == op::TargetLoss::Measure::huber ? fmt::format("{} {}", name, delta) : name;
}

Result<TargetMeasure> TargetMeasure::of_text(const std::string& text) {
  const std::size_t blank = text.find(' ');
  const auto& names = target_measures();
  const auto found = std::find(names.begin(), names.end(), text.substr(0, blank));
  TargetMeasure out;
  if (found == names.end()) return fail(ErrorKind::input, "'{}' is not a loss over targets", text);
  out.measure = static_cast<op::TargetLoss::Measure>(found - names.begin());
  if (blank == std::string::npos) return out;
  const auto delta = parse_number(text.substr(blank + 1));
  if (!delta) return fail(ErrorKind::input, "'{}' is not a loss over targets", text);
  out.delta = *delta;
  return out;
}

void set_measure(Graph& graph, const TargetMeasure& measure) {
  for (Node& node : graph.nodes)
    if (auto* const loss = std::get_if<op::TargetLoss>(&node.operation)) {
      loss->measure = measure.measure;
      loss->delta = static_cast<float>(measure.delta);
    }
}

Result<void> check_target_loss(const Graph& graph) {
  if (std::holds_alternative<op::TargetLoss>(graph.nodes.back().operation)) return {};
  return fail(
      Error{.kind = ErrorKind::input,
            .what = fmt::format("model '{}' has a loss of its own, and train.data has targets", graph.model),
            .hint = "choose a model that classifies images, whose loss the targets replace; in a "
                    "list of layers, remove 'loss'"});
}

}  // namespace dlrun::runtime
