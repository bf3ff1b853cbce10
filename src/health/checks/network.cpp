// The network between the nodes: who reaches whom by TCP, and how fast each node sends and receives. The head
// has the nodes measure it in pairs (src/run/checker.hpp); a node's rates are its best over all its partners,
// so that a slow partner harms nobody else. Values: `tried`, `unreachable` (hosts), `problem` (of the first),
// `asked_by`, `reached_by` (numbers of nodes), `send`, `receive` (bytes per second), `connect` (seconds).
#include <algorithm>

#include "src/base/units.hpp"
#include "src/health/compare.hpp"

namespace dlrun::health {
namespace {

constexpr double kSlow = 0.25;  // of the median

std::string rate_text(double bytes_per_second) {
  return format_size(static_cast<std::uint64_t>(bytes_per_second)) + "/s";
}

std::string hosts_text(const std::vector<std::string>& hosts) {
  return hosts.size() == 1 ? hosts.front() : fmt::format("{} and {} more", hosts.front(), hosts.size() - 1);
}

void judge_reach(const Sample& sample, std::vector<Found>& out) {
  const auto unreachable = field<std::vector<std::string>>(sample.values, "unreachable", "network")
                               .value_or(std::vector<std::string>());
  const double tried = number_of(sample.values, "tried").value_or(0);
  const double asked_by = number_of(sample.values, "asked_by").value_or(0);
  const double missed = asked_by - number_of(sample.values, "reached_by").value_or(asked_by);
  if (!unreachable.empty())
    out.push_back(
        {sample.node, 2 * static_cast<double>(unreachable.size()) > tried ? State::bad : State::warning,
         fmt::format("it cannot reach {}: {}", hosts_text(unreachable), text_of(sample.values, "problem"))});
  if (2 * missed > asked_by)
    out.push_back(
        {sample.node, State::bad, fmt::format("{:.0f} of {:.0f} nodes cannot reach it", missed, asked_by)});
}

std::vector<Found> judge_rate(const std::vector<Sample>& samples, std::string_view name,
                              std::string_view verb) {
  std::vector<double> rates;
  for (const Sample& sample : samples)
    if (const auto rate = number_of(sample.values, name)) rates.push_back(*rate);
  const double usual = median(rates);
  std::vector<Found> out;
  if (rates.empty()) return out;
  // Of two nodes, the one that sends slowly to the other may have a partner that receives slowly.
  const double limit = kSlow * (rates.size() > 2 ? usual : *std::max_element(rates.begin(), rates.end()));
  for (const Sample& sample : samples)
    if (const auto rate = number_of(sample.values, name); rate && *rate < limit)
      out.push_back({sample.node, rates.size() > 2 ? State::bad : State::warning,
                     fmt::format("it {} {}; {} is usual", verb, rate_text(*rate), rate_text(usual))});
  return out;
}

std::vector<Found> judge(const std::vector<Sample>& samples) {
  std::vector<Found> out;
  for (const Sample& sample : samples) judge_reach(sample, out);
  append(out, judge_rate(samples, "send", "sends"));
  append(out, judge_rate(samples, "receive", "receives"));
  return out;
}

}  // namespace

Check network_check() {
  return {.name = "network", .judge = judge};
}

}  // namespace dlrun::health
