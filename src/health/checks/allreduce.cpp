// An allreduce over all nodes at once, by a ring in their order: what a training does in every step. A node
// or link may be fast as long as two nodes talk, and slow here: since it delays each small message, or since
// others talk, too. The head has the nodes measure it in halves until it knows who is slow
// (src/health/bisection.hpp). Values: `rate` of all together and `usual` of pairs (bytes per second of a
// link); `slow` (the node), `slow_with` (hosts: the link to them is slow, or all of them together are), with
// `slow_rate`. Only with level full.
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/health/compare.hpp"

namespace dlrun::health {
namespace {

std::string rate_text(double bytes_per_second) {
  return format_size(static_cast<std::uint64_t>(bytes_per_second)) + "/s";
}

std::optional<Found> judge_node(const Sample& sample) {
  const auto rate = number_of(sample.values, "slow_rate"), usual = number_of(sample.values, "usual");
  const auto others = field<std::vector<std::string>>(sample.values, "slow_with", "allreduce")
                          .value_or(std::vector<std::string>());
  if (!rate || !usual) return std::nullopt;
  const std::string rates = fmt::format("{}; {} is usual", rate_text(*rate), rate_text(*usual));
  if (others.empty())
    return Found{sample.node, State::bad, fmt::format("it slows an allreduce down to {}", rates)};
  if (others.size() == 1)
    return Found{
        sample.node, State::warning,
        fmt::format("the link between it and {} slows an allreduce down to {}", others.front(), rates)};
  return Found{sample.node, State::warning,
               fmt::format("an allreduce with {} runs at {}, although no two of them are slow",
                           join(others, ", "), rates)};
}

std::vector<Found> judge(const std::vector<Sample>& samples) {
  std::vector<Found> out;
  for (const Sample& sample : samples)
    if (auto found = judge_node(sample)) out.push_back(std::move(*found));
  return out;
}

}  // namespace

Check allreduce_check() {
  return {.name = "allreduce", .judge = judge};
}

}  // namespace dlrun::health
