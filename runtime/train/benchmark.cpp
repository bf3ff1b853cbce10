// See benchmark.hpp.
#include "runtime/train/benchmark.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "src/base/json.hpp"

namespace dlrun::runtime {
namespace {

constexpr double near_the_bound = 0.02;  // a gap that is not worth a reason: steps differ by as much

double ms(Seconds time) {
  return 1e3 * time.count();
}

double mib(double bytes) {
  return bytes / 1048576;
}

Seconds beyond(Seconds time, Seconds base) {
  return std::max(time - base, Seconds(0));
}

std::string plus_minus(double share) {
  return share > 0 ? fmt::format(" +- {:.1f} %", 100 * share) : "";
}

}  // namespace

std::size_t BenchmarkFigures::slowest() const {
  const auto most =
      std::max_element(ranks.begin(), ranks.end(), [](const RankFigures& left, const RankFigures& right) {
        return left.compute_seconds < right.compute_seconds;
      });
  return static_cast<std::size_t>(most - ranks.begin());
}

double BenchmarkFigures::largest(double RankFigures::*what) const {
  double most = 0;
  for (const RankFigures& rank : ranks) most = std::max(most, rank.*what);
  return most;
}

Seconds BenchmarkFigures::compute() const {
  std::vector<double> sorted;
  for (const RankFigures& rank : ranks) sorted.push_back(rank.compute_seconds);
  std::sort(sorted.begin(), sorted.end());
  return Seconds(sorted[(sorted.size() - 1) / 2]);
}

Seconds BenchmarkFigures::bound() const {
  return std::max(compute(), communication);
}

double BenchmarkFigures::scaling_efficiency() const {
  return ranks.size() == 1 || steps.median().count() == 0 ? 1 : alone / steps.median();
}

double BenchmarkFigures::input_share() const {
  return steps.median().count() == 0 ? 0 : beyond(steps.median(), repeated_input) / steps.median();
}

BenchmarkFigures::Gap BenchmarkFigures::gap() const {
  const Seconds last(ranks[slowest()].compute_seconds);
  return {.input = beyond(steps.median(), repeated_input),
          .exposed = beyond(std::min(steps.median(), repeated_input), last),
          .stragglers = beyond(last, compute())};
}

std::string BenchmarkFigures::reason() const {
  const Gap parts = gap();
  const Seconds most = std::max({parts.input, parts.exposed, parts.stragglers});
  if (beyond(steps.median(), bound()) <= near_the_bound * steps.median()) return "none: at the bound";
  if (most == parts.input) return fmt::format("input, {:.2f} ms of a step: batches are late", ms(most));
  if (most == parts.stragglers)
    return fmt::format("rank {} computes {:.0f} % longer than the median rank", slowest(),
                       100 * (most / compute()));
  return ranks.size() == 1
             ? fmt::format("{:.2f} ms of a step outside computation: the machine did other work", ms(most))
             : fmt::format("{:.2f} ms of communication are not hidden behind computation", ms(most));
}

Json BenchmarkFigures::to_json() const {
  const double rate = steps.per_second(), count = static_cast<double>(ranks.size());
  const double per_step = steps.per_step();
  const Gap parts = gap();
  const std::string key = unit.key();
  return Json{
      {key, rate},
      {key + "_rank", rate / count},
      {key + "_median_step", per_step / steps.median().count()},
      {"steps", steps.steps()},
      {"step_ms_median", ms(steps.median())},
      {"windows", {{key, steps.windows()}, {"uncertainty", steps.uncertainty()}}},
      {"step_ms",
       {{"mean", ms(steps.mean())},
        {"std", ms(steps.std_dev())},
        {"p10", ms(steps.quantile(0.1))},
        {"p90", ms(steps.quantile(0.9))},
        {"p95", ms(steps.quantile(0.95))},
        {"longest", ms(steps.quantile(1))}}},
      {"memory_mib",
       {{"peak_of_rank", mib(largest(&RankFigures::peak_bytes))},
        {"model", mib(largest(&RankFigures::engine_bytes))}}},
      {"scaling", {{"efficiency", scaling_efficiency()}, {key + "_alone", per_step / count / alone.count()}}},
      {"input", {{"share", input_share()}, {key + "_repeated_batch", per_step / repeated_input.count()}}},
      {"bound",
       {{"compute_ms", ms(compute())},
        {"communication_ms", ms(communication)},
        {"gradient_bytes", gradient_bytes},
        {"bound_ms", ms(bound())},
        {"reached", bound() / steps.median()},
        {"input_ms", ms(parts.input)},
        {"exposed_ms", ms(parts.exposed)},
        {"stragglers_ms", ms(parts.stragglers)},
        {"reason", reason()}}}};
}

std::vector<std::string> BenchmarkFigures::lines() const {
  const double rate = steps.per_second(), count = static_cast<double>(ranks.size());
  const double per_step = steps.per_step();
  std::vector<std::string> out;
  out.push_back(fmt::format("{:.1f} {}/s{}, {:.1f} per rank, over {} steps in {} windows", rate, unit.name,
                            plus_minus(steps.uncertainty()), rate / count, steps.steps(),
                            steps.windows().size()));
  out.push_back(fmt::format(
      "step: {:.2f} ms by the median; 10 % to 90 %: {:.2f} to {:.2f} ms; longest {:.2f}", ms(steps.median()),
      ms(steps.quantile(0.1)), ms(steps.quantile(0.9)), ms(steps.quantile(1))));
  out.push_back(fmt::format("memory: at most {:.0f} MiB per rank; the model's arenas have {:.0f} MiB",
                            mib(largest(&RankFigures::peak_bytes)),
                            mib(largest(&RankFigures::engine_bytes))));
  if (ranks.size() > 1)
    out.push_back(fmt::format("scaling: {:.1f} % of {} times one rank alone ({:.1f} {}/s)",
                              100 * scaling_efficiency(), ranks.size(), per_step / count / alone.count(),
                              unit.name));
  out.push_back(fmt::format("input: {:.1f} % of a step; {:.1f} {}/s with the batch held in memory",
                            100 * input_share(), per_step / repeated_input.count(), unit.name));
  out.push_back(
      fmt::format("bound: {:.2f} ms = max(compute {:.2f}, communication {:.2f}); reached {:.1f} %; gap: {}",
                  ms(bound()), ms(compute()), ms(communication), 100 * (bound() / steps.median()), reason()));
  return out;
}

}  // namespace dlrun::runtime
