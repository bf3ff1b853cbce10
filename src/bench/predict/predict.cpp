#include "src/bench/predict/predict.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/bench/predict/fit.hpp"

namespace dlrun::bench::predict {
namespace {

constexpr double kPerDoubling =
    0.25;  // how much less sure the overhead is, per doubling beyond what was measured
constexpr double kHidden = 2.0 / 3;  // of the computation, backward, in which an exchange may hide
constexpr double kNamed = 0.1;       // a part of a step that is worth naming
constexpr double kSigmas = 2;        // of a range
constexpr std::size_t kMaxSizes = 64;
constexpr std::int64_t kMaxNodes = 10'000'000;

struct Part {
  std::string reason;
  double share = 0;  // of a step
};

// What a size is expected to have.
struct Expected {
  Range efficiency;
  std::vector<Part> parts;
};

const Size& base_of(const Workload& work) {
  return work.points.front().size;
}

// The part of the smallest point's work per rank that a rank has at this size.
double work_of(const Workload& work, const Size& size) {
  return work.scaling == Scaling::strong ? base_of(work).ranks() / size.ranks() : 1;
}

std::vector<double> amounts_of(const Workload& work, const Size& size) {
  std::vector<double> out;
  for (const Term& term : terms_of(work.algorithm))
    out.push_back(term.amount(size) - work_of(work, size) * term.amount(base_of(work)));
  return out;
}

std::vector<FitPoint> fit_points(const Workload& work) {
  std::vector<FitPoint> out;
  for (const Measured& point : work.points) {
    FitPoint each{.amounts = amounts_of(work, point.size),
                  .seconds = point.seconds - work_of(work, point.size) * work.points.front().seconds,
                  .noise = point.noise};
    const bool tells = std::any_of(each.amounts.begin(), each.amounts.end(), [](double a) { return a != 0; });
    if (tells) out.push_back(std::move(each));
  }
  return out;
}

double largest_of(const Workload& work) {
  return std::max_element(
             work.points.begin(), work.points.end(),
             [](const Measured& a, const Measured& b) { return a.size.ranks() < b.size.ranks(); })
      ->size.ranks();
}

double noise_of(const Workload& work) {
  double out = 0;
  for (const Measured& point : work.points) out = std::max(out, point.noise / point.seconds);
  return out;
}

Expected expected_by_fit(const Workload& work, const std::vector<Model>& models, const Size& size) {
  const auto amounts = amounts_of(work, size);
  const auto terms = terms_of(work.algorithm);
  const double own = work_of(work, size) * work.points.front().seconds;
  Expected out;
  for (const Term& term : terms) out.parts.push_back({std::string(term.reason)});
  double squares = 0;
  for (const Model& model : models) {
    const double all =
        own + std::inner_product(amounts.begin(), amounts.end(), model.coefficients.begin(), 0.0);
    const double efficiency = own / std::max(all, own * 1e-3);
    out.efficiency.mean += model.weight * efficiency;
    squares += model.weight * efficiency * efficiency;
    for (std::size_t i = 0; i < amounts.size(); ++i)
      out.parts[i].share += model.weight * model.coefficients[i] * amounts[i] / all;
  }
  const double mean = out.efficiency.mean,
               doublings = std::max(0.0, std::log2(size.ranks() / largest_of(work)));
  const double spread = std::max(squares - mean * mean, 0.0),
               beyond = kPerDoubling * doublings * mean * (1 - mean);
  const double error = kSigmas * std::sqrt(spread + beyond * beyond + std::pow(noise_of(work) * mean, 2));
  out.efficiency.low = std::max(mean - error, 0.0);
  out.efficiency.high = std::max(mean, std::min(mean + error, 1.0));
  return out;
}

Expected expected_on(const Network& network, const Workload& work, Algorithm algorithm, double bytes,
                     const Size& size) {
  const double own = work_of(work, size) * work.points.front().seconds;
  const Cost cost = cost_of(algorithm, network, bytes, size);
  const double slowest = work_of(work, size) * work.step_std * highest_of(size.ranks());
  const double longest = own + slowest + cost.seconds();
  const double shortest = own + slowest + std::max(0.0, cost.seconds() - kHidden * own);
  const double mean = (longest + shortest) / 2,
               visible = (mean - own - slowest) / std::max(cost.seconds(), 1e-300);
  return {.efficiency = {own / mean, own / longest, own / shortest},
          .parts = {{"latency", visible * cost.latency / mean},
                    {algorithm == Algorithm::parameter_server ? "the bandwidth of the servers" : "bandwidth",
                     visible * cost.bandwidth / mean},
                    {"the slowest rank", slowest / mean}}};
}

std::string reason_of(const std::vector<Part>& parts) {
  const auto largest = std::max_element(parts.begin(), parts.end(),
                                        [](const Part& a, const Part& b) { return a.share < b.share; });
  if (largest != parts.end() && largest->share >= kNamed)
    return fmt::format("{}: {:.0f} % of a step", largest->reason, 100 * largest->share);
  double rest = 1;
  for (const Part& part : parts) rest -= part.share;
  return fmt::format("computation: {:.0f} % of a step", 100 * rest);
}

using Expect = std::function<Expected(const Size&)>;

Size size_of(const Workload& work, double nodes, double servers) {
  return {.nodes = nodes, .ranks_per_node = work.points.back().size.ranks_per_node, .servers = servers};
}

// Of 1, 2, 4, ... up to one per rank.
double best_servers(const Workload& work, double nodes, const Expect& expect) {
  double best = 1, highest = -1;
  for (double servers = 1; servers <= size_of(work, nodes, 1).ranks(); servers *= 2) {
    const double efficiency = expect(size_of(work, nodes, servers)).efficiency.mean;
    if (efficiency > highest * (1 + 1e-9)) best = servers, highest = efficiency;
  }
  return best;
}

double servers_for(const Request& request, std::size_t i, const Workload& work, const Expect& expect) {
  if (request.servers.empty()) return best_servers(work, request.nodes[i], expect);
  return request.servers[std::min(i, request.servers.size() - 1)];
}

Prediction prediction_of(const Workload& work, Algorithm algorithm, const Size& size,
                         const Expected& expected) {
  const double ideal = work.points.front().rate * size.ranks() / base_of(work).ranks();
  const Range& e = expected.efficiency;
  return {.series = work.series,
          .nodes = size.nodes,
          .servers = algorithm == Algorithm::parameter_server ? size.servers : 0,
          .algorithm = algorithm,
          .rate = {ideal * e.mean, ideal * e.low, ideal * e.high},
          .efficiency = e,
          .reason = reason_of(expected.parts)};
}

void add(const Request& request, const Workload& work, Algorithm algorithm, const Expect& expect,
         Forecast& out) {
  for (std::size_t i = 0; i < request.nodes.size(); ++i) {
    const double servers =
        algorithm == Algorithm::parameter_server ? servers_for(request, i, work, expect) : 1;
    const Size size = size_of(work, request.nodes[i], servers);
    out.predictions.push_back(prediction_of(work, algorithm, size, expect(size)));
  }
}

void assume(Forecast& out, std::string text) {
  if (std::find(out.assumptions.begin(), out.assumptions.end(), text) == out.assumptions.end())
    out.assumptions.push_back(std::move(text));
}

void assume_fit(const Workload& work, const std::vector<Model>& models, std::size_t points, Forecast& out) {
  double off = 0;
  for (const Measured& point : work.points) {
    const double expected = expected_by_fit(work, models, point.size).efficiency.mean;
    const double measured = work_of(work, point.size) * work.points.front().seconds / point.seconds;
    off = std::max(off, std::abs(expected - measured));
  }
  const auto sets =
      std::count_if(models.begin(), models.end(), [](const Model& m) { return m.weight > 0.01; });
  assume(out, fmt::format("{}{}: {} of terms fitted to {} beyond the smallest; at measured "
                          "points the mean is off by "
                          "at most {:.1f} points of efficiency",
                          work.series.empty() ? "" : work.series + ": ", name_of(work.algorithm),
                          sets == 1 ? "1 set" : fmt::format("{} sets", sets),
                          points == 1 ? "1 point" : fmt::format("{} points", points), 100 * off));
  assume(out, fmt::format("ranges are two standard errors: the disagreement of the fits, the noise of the "
                          "points, and {:.0f} % of the "
                          "overhead per doubling beyond the largest point",
                          100 * kPerDoubling));
  assume(out, "a fit does not know what no point shows, such as a network that saturates at a larger size");
}

Result<void> add_fit(const Request& request, const Workload& work, Forecast& out) {
  const auto points = fit_points(work);
  if (points.empty())
    return bad_input("",
                     fmt::format("{}one size was measured, and a fit needs two",
                                 work.series.empty() ? "" : work.series + ": "),
                     "measure a second size, or name a network with --network");
  const auto models = fit_models(points, terms_of(work.algorithm).size());
  const Expect expect = [&](const Size& size) { return expected_by_fit(work, models, size); };
  add(request, work, work.algorithm, expect, out);
  assume_fit(work, models, points.size(), out);
  return {};
}

Result<void> add_network(const Request& request, const Workload& work, Forecast& out) {
  const auto bytes = request.bytes ? request.bytes : work.bytes;
  if (!bytes)
    return bad_input("", "no point of this bench has the bytes that a rank exchanges per step",
                     "give them with --bytes, 4 per parameter in f32: --bytes 95MB for Inception v3");
  if (!work.absolute)
    return bad_input("", "this bench has neither the seconds of a step nor the batch of a rank",
                     "measure with an axis batch, or predict without --network");
  const Network& network = *request.network;
  for (const Algorithm algorithm : kAlgorithms)
    add(
        request, work, algorithm,
        [&](const Size& size) { return expected_on(network, work, algorithm, *bytes, size); }, out);
  assume(out,
         fmt::format("{}: {}; {:.3g} µs and {:.3g} GB/s per node, {:.3g} µs and {:.3g} GB/s within a node",
                     network.name, network.text, network.between.latency * 1e6,
                     network.between.bytes_per_second / 1e9, network.within.latency * 1e6,
                     network.within.bytes_per_second / 1e9));
  assume(out, fmt::format("each rank exchanges {} per step, and computes {} of it",
                          format_size(static_cast<std::uint64_t>(std::min(*bytes, 1e18))),
                          format_duration(Seconds(work.points.front().seconds))));
  assume(out,
         "low: no exchange is hidden; high: as much as fits is hidden behind two thirds of the computation; "
         "the mean is between");
  assume(out, "the software costs nothing beyond these figures; a fit of measured points knows what it does");
  assume(out, work.step_std > 0
                  ? "each step waits for the slowest rank, by the standard deviation of the measured steps"
                  : "all ranks compute equally long, as no deviation of steps was measured");
  return {};
}

}  // namespace

double highest_of(double count) {
  if (count < 2) return 0;
  const double a = std::sqrt(2 * std::log(count));
  return std::max(0.0, a - (std::log(std::log(count)) + std::log(4 * M_PI)) / (2 * a) + 0.5772 / a);
}

Result<std::vector<double>> parse_sizes(const std::string& text) {
  std::vector<double> out;
  for (const std::string& each : split(text, ',')) {
    const auto value = parse_integer(std::string(trim(each)), 1, kMaxNodes);
    if (!value) return fail(ErrorKind::usage, "'{}': {}", text, value.error().what);
    out.push_back(static_cast<double>(*value));
  }
  if (out.size() > kMaxSizes)
    return fail(ErrorKind::usage, "{} sizes, more than the maximum of {}", out.size(), kMaxSizes);
  return out;
}

Result<Forecast> predict(const results::Bench& bench, const Request& request) {
  Forecast out{.unit = bench.unit.empty() ? "rate" : bench.unit, .predictions = {}, .assumptions = {}};
  if (request.servers.size() > 1 && request.servers.size() != request.nodes.size())
    return fail(ErrorKind::usage, "{} numbers of servers for {} sizes", request.servers.size(),
                request.nodes.size());
  for (const Workload& work : TRY(workloads_of(bench))) {
    for (const std::string& text : work.assumptions) assume(out, text);
    TRY(request.network ? add_network(request, work, out) : add_fit(request, work, out));
  }
  return out;
}

}  // namespace dlrun::bench::predict
