// What follows from the measurements of a benchmark: each reason for a gap is named by the figure that shows
// it.
#include "runtime/train/benchmark.hpp"

#include <thread>

#include <doctest/doctest.h>

#include "src/base/json.hpp"

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

// Steps of at least `length`; the test then measures everything else in lengths of the median step.
Throughput steps_of(std::chrono::milliseconds length) {
  Throughput out;
  for (int window = 0; window < 2; ++window) {
    out.start_window();
    for (int step = 0; step < 3; ++step) {
      std::this_thread::sleep_for(length);
      out.step_done(64);
    }
  }
  return out;
}

// Two ranks that do nothing but compute, by shares of a step.
BenchmarkFigures ideal() {
  BenchmarkFigures out{.steps = steps_of(std::chrono::milliseconds(2))};
  const Seconds step = out.steps.median();
  out.repeated_input = step;
  out.alone = step;
  out.communication = 0.1 * step;
  out.ranks = {{step.count(), 3e8, 1e8}, {step.count(), 2e8, 1e8}};
  return out;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a rate is images over time, the spread that of steps, the uncertainty that of windows") {
  const Throughput steps = steps_of(std::chrono::milliseconds(1));
  CHECK(steps.steps() == 6);
  CHECK(steps.windows().size() == 2);
  CHECK(steps.per_step() == 64);
  CHECK(steps.quantile(0) >= std::chrono::milliseconds(1));
  CHECK(steps.quantile(0.1) <= steps.median());
  CHECK(steps.median() <= steps.quantile(1));
  CHECK(steps.per_second() <= 64 / 1e-3);
  CHECK(steps.uncertainty() >= 0);
  CHECK(Throughput().per_second() == 0);
  CHECK(64 / steps.mean().count() == doctest::Approx(steps.per_second()));
  CHECK(steps.std_dev() <= steps.quantile(1));
  CHECK(Throughput().mean().count() == 0);
  CHECK(Throughput().std_dev().count() == 0);
}

TEST_CASE("where nothing is lost the bound is reached, and no reason is made up") {
  const BenchmarkFigures figures = ideal();
  CHECK(figures.bound() == figures.steps.median());
  CHECK(figures.reason() == "none: at the bound");
  CHECK(figures.scaling_efficiency() == doctest::Approx(1));
  CHECK(figures.input_share() == 0);
}

TEST_CASE("input that comes too late") {
  BenchmarkFigures figures = ideal();
  const Seconds step = figures.steps.median();
  figures.repeated_input = 0.7 * step;
  figures.ranks[0].compute_seconds = figures.ranks[1].compute_seconds = 0.65 * step.count();
  CHECK(figures.input_share() == doctest::Approx(0.3));
  CHECK(contains(figures.reason(), "input, "));
}

TEST_CASE("an exchange that is not hidden") {
  BenchmarkFigures figures = ideal();
  figures.ranks[0].compute_seconds = figures.ranks[1].compute_seconds = 0.6 * figures.steps.median().count();
  figures.communication = 0.5 * figures.steps.median();
  CHECK(contains(figures.reason(), "of communication are not hidden behind computation"));
  CHECK(figures.gap().exposed.count() == doctest::Approx(0.4 * figures.steps.median().count()));
}

TEST_CASE("a rank that holds the others up is named") {
  BenchmarkFigures figures = ideal();
  figures.ranks[0].compute_seconds = 0.8 * figures.steps.median().count();
  CHECK(figures.reason() == "rank 1 computes 25 % longer than the median rank");
}

TEST_CASE("communication that is slower than computing is the bound") {
  BenchmarkFigures figures = ideal();
  figures.communication = 1.5 * figures.steps.median();
  CHECK(figures.bound() == figures.communication);
}

TEST_CASE("scaling is measured against one rank alone") {
  BenchmarkFigures figures = ideal();
  figures.alone = 0.9 * figures.steps.median();
  CHECK(figures.scaling_efficiency() == doctest::Approx(0.9));
  CHECK(contains(figures.lines()[3], "scaling: 90.0 % of 2 times one rank alone"));
}

TEST_CASE("the record has the figures by name") {
  const Json json = ideal().to_json();
  CHECK(json["steps"] == 6);
  CHECK(json["images_per_s"].get<double>() == doctest::Approx(2 * json["images_per_s_rank"].get<double>()));
  CHECK(json["memory_mib"]["peak_of_rank"].get<double>() == doctest::Approx(286.1).epsilon(0.001));
  CHECK(json["bound"]["reached"].get<double>() == doctest::Approx(1));
  CHECK(json["bound"]["reason"] == "none: at the bound");
}
