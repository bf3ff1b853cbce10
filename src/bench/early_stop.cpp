#include "src/bench/early_stop.hpp"

#include <algorithm>

#include "src/base/json.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::bench {
namespace {

// Lines of metrics.jsonl, and the last report in status.json.
std::vector<Json> reports_of(const std::filesystem::path& run) {
  std::vector<Json> out;
  if (const auto text = read_regular_file(run / "metrics.jsonl", kMaxJsonBytes))
    for (const std::string& line : split(*text, '\n'))
      if (const auto json = parse_json(line, "metrics.jsonl"); json && json->is_object())
        out.push_back(*json);
  if (const auto text = read_regular_file(run / "status.json", kMaxJsonBytes))
    if (const auto json = parse_json(*text, "status.json"); json && json->is_object())
      if (const Json progress = json->value("progress", Json()); progress.is_object())
        out.push_back(progress);
  return out;
}

std::optional<int> epoch_of(const Json& report) {
  const auto epoch = field<int>(report, "epoch", "report");
  return epoch && *epoch > 0 ? std::optional(*epoch) : std::nullopt;
}

}  // namespace

bool EarlyStop::is_better(double one, double other) const {
  return goal_.better == plan::BenchGoal::Better::higher ? one > other : one < other;
}

std::optional<std::string> EarlyStop::why_stopped(std::size_t point, const EpochValues& values) {
  for (int epoch = 1; epoch < epochs_; epoch *= 2) {
    const auto* const all = note(point, epoch, values);
    if (all == nullptr) continue;
    const double value = all->at(point);
    const auto better = static_cast<std::size_t>(std::count_if(
        all->begin(), all->end(), [&](const auto& other) { return is_better(other.second, value); }));
    if (better >= (all->size() + 1) / 2)
      return fmt::format("{} {:.4g} after {} of {} epochs is not in the better half of {}", goal_.metric,
                         value, epoch, epochs_, all->size());
  }
  return std::nullopt;
}

void EarlyStop::know(std::size_t point, const EpochValues& values) {
  for (int epoch = 1; epoch < epochs_; epoch *= 2) note(point, epoch, values);
}

// A value that was told late counts for the epoch that it is of. All at this rung, where the point has newly
// come to it: it is judged once.
const std::map<std::size_t, double>* EarlyStop::note(std::size_t point, int epoch,
                                                     const EpochValues& values) {
  const auto found = values.find(epoch);
  if (found == values.end()) return nullptr;
  auto& rung = rungs_[epoch];
  return rung.emplace(point, found->second).second ? &rung : nullptr;
}

EpochValues epoch_values(const std::filesystem::path& run, const std::string& metric) {
  EpochValues out;
  for (const Json& report : reports_of(run)) {
    const auto value = field<double>(report, metric.c_str(), "report");
    if (const auto epoch = epoch_of(report); epoch && value) out[*epoch] = *value;
  }
  return out;
}

std::map<std::string, double> last_epoch_metrics(const std::filesystem::path& run) {
  std::map<std::string, double> out;
  for (const Json& report : reports_of(run)) {
    if (!epoch_of(report)) continue;
    for (const auto& [name, value] : report.items())
      if (value.is_number() && name != "time" && name != "step" && name != "steps")
        out[name] = value.get<double>();
  }
  return out;
}

}  // namespace dlrun::bench
