// The section `bench`: which points it asks for, and what it refuses, with the place.
#include "src/plan/bench_spec.hpp"

#include <doctest/doctest.h>

#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

const std::string kJob = "framework: builtin\ntrain: {model: mnist-cnn, data: {format: synthetic}}\n";

Result<plan::BenchSpec> bench(const std::string& section) {
  const auto spec = job(kJob + section);
  if (!spec) return fail(spec.error());
  return spec->bench.value_or(plan::BenchSpec{});
}

std::vector<std::string> texts(const std::vector<plan::BenchPoint>& points) {
  std::vector<std::string> out;
  for (const plan::BenchPoint& point : points) {
    out.emplace_back();
    for (const plan::BenchValue& value : point) out.back() += value.key + "=" + value.value.scalar + " ";
  }
  return out;
}

}  // namespace

TEST_CASE("axes are a grid, of which the last axis changes first") {
  const auto spec =
      bench("bench: {axes: {nodes: [1, 2], train.optimizer.lr: [0.1, 0.2]}, repeats: 2}\n").value();
  CHECK(texts(plan::points_of(spec)) ==
        std::vector<std::string>{"nodes=1 train.optimizer.lr=0.1 ", "nodes=1 train.optimizer.lr=0.2 ",
                                 "nodes=2 train.optimizer.lr=0.1 ", "nodes=2 train.optimizer.lr=0.2 "});
  CHECK(plan::count_points(spec).value() == 8);
}

TEST_CASE("points may be a list") {
  const auto spec = bench("bench: {points: [{nodes: 1, batch: 64}, {nodes: 2}]}\n").value();
  CHECK(texts(plan::points_of(spec)) == std::vector<std::string>{"nodes=1 batch=64 ", "nodes=2 "});
  CHECK(plan::count_points(spec).value() == 2);
}

TEST_CASE("an axis of the command line adds to the job file's, or takes the place of one") {
  auto spec = bench("bench: {axes: {nodes: [1, 2]}}\n").value();
  CHECK(plan::set_axis(spec, plan::bench_axis_of("nodes=4").value()));
  CHECK(plan::set_axis(spec, plan::bench_axis_of("bucket=1MiB,\"8MiB\"").value()));
  CHECK(texts(plan::points_of(spec)) ==
        std::vector<std::string>{"nodes=4 bucket=1MiB ", "nodes=4 bucket=8MiB "});
  spec = bench("bench: {points: [{nodes: 1}]}\n").value();
  CHECK(
      error_of(plan::set_axis(spec, plan::bench_axis_of("nodes=4").value())) ==
      "--axis nodes: the points are a list, bench.points\n  hint: write bench.axes in place of bench.points");
}

TEST_CASE("what cannot be measured is refused with its place") {
  CHECK(error_of(bench("bench: {axes: {nodes: []}}\n")) ==
        "job.yaml:3:16: the axis 'nodes' has no values\n  hint: write it as nodes: [1, 2, 4]");
  CHECK(error_of(bench("bench: {axes: {nodes: [[1]]}}\n"))
            .starts_with("job.yaml:3:24: a value of the axis 'nodes'"));
  CHECK(error_of(bench("bench: {axis: {nodes: [1]}}\n")) ==
        "job.yaml:3:9: unknown key 'axis' in 'bench'\n  hint: did you mean 'axes'?");
  CHECK(error_of(bench("bench: {axes: {nodes: 1}, points: [{nodes: 1}]}\n"))
            .starts_with("job.yaml:3:35: bench.axes and bench.points exclude each other"));
  CHECK(error_of(bench("bench: {epochs: 1, rate: x}\n"))
            .starts_with("job.yaml:3:26: bench.epochs and bench.rate exclude each other"));
  CHECK(error_of(bench("bench: {limit: 0s}\n")) == "job.yaml:3:16: bench.limit must be longer than 0s");
  CHECK(error_of(plan::bench_axis_of("nodes=")) ==
        "--axis nodes: the axis 'nodes' has no values\n  hint: write it as --axis nodes=1,2,4");
  CHECK(error_of(plan::bench_axis_of("batch=4,,8")).ends_with("  hint: write it as --axis nodes=1,2,4"));
  CHECK(error_of(plan::bench_axis_of("nodes")) ==
        "--axis nodes: no values\n  hint: write it as --axis nodes=1,2,4");
}

TEST_CASE("a grid of a billion points is counted, and refused") {
  std::string axes;
  for (char name = 'a'; name < 'j'; ++name)
    axes += std::string(1, name) + ".x: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], ";
  const auto spec = bench("bench: {axes: {" + axes + "}}\n").value();
  const std::string error = error_of(plan::count_points(spec));
  CHECK(error.find("job.yaml:3:") == 0);
  CHECK(error.find("bench has 1000000000 points (10 of a.x x 10 of b.x") != std::string::npos);
  CHECK(error.find("at most 10000 are measured") != std::string::npos);
  CHECK(error_of(plan::count_points(bench("bench: {repeats: 3}\n").value()))
            .starts_with("job.yaml:3:8: bench has no points"));
  plan::BenchSpec of_flag;
  of_flag.source = "--steps";
  CHECK(error_of(plan::count_points(of_flag)).starts_with("bench has no points"));
}

TEST_CASE("an axis has each value once") {
  const auto twice = [](const std::string& axis) {
    plan::BenchSpec spec;
    spec.axes = {plan::bench_axis_of(axis).value()};
    return error_of(plan::count_points(spec));
  };
  CHECK(twice("batch=4,8,4")
            .starts_with("--axis batch: the axis 'batch' has the value 4 twice\n"
                         "  hint: to measure each point more than once, use --repeats"));
  plan::BenchSpec spec;
  spec.axes = {plan::bench_axis_of("batch=4,8").value()};
  CHECK(plan::count_points(spec).value() == 2);
}

TEST_CASE("the metric of early stopping says which is better, and is for trainings") {
  using Better = plan::BenchGoal::Better;
  CHECK(plan::bench_goal_of("test_accuracy").value().better == Better::higher);
  CHECK(plan::bench_goal_of("epoch_loss").value().better == Better::lower);
  CHECK(plan::bench_goal_of("min:perplexity").value().metric == "perplexity");
  CHECK(plan::bench_goal_of("min:perplexity").value().better == Better::lower);
  for (const char* text : {"", "perplexity", "max:", "up:score", "loss_accuracy"})
    CHECK(error_of(plan::bench_goal_of(text)).find("more or less of it is better") != std::string::npos);
  const auto spec = bench("bench: {axes: {batch: [1, 2]}, epochs: 8, stop-early: test_accuracy}\n").value();
  CHECK(spec.stop_early->metric == "test_accuracy");
  const Json written = yaml::to_json(plan::to_node(spec));
  CHECK(bench("bench: " + to_text(written) + "\n").value().stop_early->metric == "test_accuracy");
  CHECK(error_of(bench("bench: {axes: {batch: [1, 2]}, stop-early: test_accuracy}\n"))
            .find("bench.epochs is not set") != std::string::npos);
}

TEST_CASE("a section that is written down is read as the same") {
  const std::string text =
      "bench: {axes: {nodes: [1, 2], data: [real, synthetic]}, repeats: 3, warmup: 5, steps: 20, limit: 5min,"
      " time: 60s, rate: 'x: (.*)', unit: images/s, concurrent: 2, synthetic: {shape: [3, 8, 8]}}\n";
  const auto once = bench(text).value();
  const Json written = yaml::to_json(plan::to_node(once));
  const auto again = bench("bench: " + to_text(written) + "\n").value();
  CHECK(yaml::to_json(plan::to_node(again)) == written);
  CHECK(again.limit == Seconds(300));
  CHECK(again.rate == "x: (.*)");
}
