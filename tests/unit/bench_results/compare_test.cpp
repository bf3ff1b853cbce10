// Which cells of two benches differ beyond noise.
#include "src/bench/results/compare.hpp"

#include "src/bench/results/student.hpp"
#include "tests/unit/bench_results/support.hpp"

using namespace dlrun;
using namespace dlrun::bench::results;
using test::bench_json;
using test::bench_of;
using test::done;
using test::failed;

namespace {

const Json kAxes = {{{"key", "nodes"}, {"values", {1, 2}}}};

Bench of_rates(const std::vector<double>& rates) {
  Json points = Json::array();
  for (const double rate : rates)
    points.push_back(done({{"nodes", 1}}, rate, static_cast<int>(points.size())));
  return bench_of(bench_json(kAxes, points));
}

Bench of_steps(double rate, double step_std) {
  Json point = done({{"nodes", 1}}, rate);
  point["step_seconds"] = {{"mean", 0.1}, {"std", step_std}, {"p50", 0.1}, {"p95", 0.1}, {"n", 100}};
  return bench_of(bench_json(kAxes, {point}));
}

CellChange change_of(const Bench& before, const Bench& after) {
  const auto out = compare(before, after, 0.02);
  REQUIRE(out);
  REQUIRE(out->changes.size() == 1);
  return out->changes[0];
}

}  // namespace

TEST_CASE("the tail of Student's distribution is that of the tables") {
  CHECK(two_sided_p(12.706, 1) == doctest::Approx(0.05).epsilon(0.001));
  CHECK(two_sided_p(2.228, 10) == doctest::Approx(0.05).epsilon(0.001));
  CHECK(two_sided_p(2.0, 10) == doctest::Approx(0.07339).epsilon(0.001));
  CHECK(two_sided_p(-3.0, 30.5) == doctest::Approx(0.0053).epsilon(0.02));
  CHECK(two_sided_p(0, 5) == doctest::Approx(1));
}

TEST_CASE("repeats are compared by Welch's test: noise is no change, a shift is") {
  const Bench before = of_rates({100, 104, 97, 101});
  CHECK(change_of(before, of_rates({95, 99, 103, 96})).verdict == Verdict::same);
  const CellChange worse = change_of(before, of_rates({80, 82, 79, 81}));
  CHECK(worse.verdict == Verdict::worse);
  CHECK(worse.test == "Welch's t test");
  CHECK(*worse.p < 0.001);
  CHECK(change_of(before, of_rates({130, 128, 131, 127})).verdict == Verdict::better);
}

TEST_CASE("a sure change that is below the margin is none") {
  const CellChange change = change_of(of_rates({100, 100.1, 99.9}), of_rates({99, 99.1, 98.9}));
  CHECK(*change.p < 0.01);
  CHECK(change.verdict == Verdict::same);
}

TEST_CASE("one run is judged by the other's repeats, by its steps, or by a threshold") {
  CHECK(change_of(of_rates({100, 101, 99, 100}), of_rates({80})).verdict == Verdict::worse);
  CHECK(change_of(of_rates({100, 110, 90, 100}), of_rates({93})).verdict == Verdict::same);
  CHECK(change_of(of_steps(100, 0.005), of_steps(93, 0.005)).verdict == Verdict::worse);  // 5 %
  CHECK(change_of(of_steps(100, 0.03), of_steps(93, 0.03)).verdict == Verdict::same);     // 12.7 %
  CHECK(change_of(of_rates({100}), of_rates({91})).verdict == Verdict::same);
  CHECK(change_of(of_rates({100}), of_rates({89})).verdict == Verdict::worse);
}

TEST_CASE("failures and missing cells: what fails now is a regression, what is missing is said") {
  const Bench before = bench_of(bench_json(kAxes, {done({{"nodes", 1}}, 10), done({{"nodes", 2}}, 20)}));
  const Bench broken =
      bench_of(bench_json(kAxes, {done({{"nodes", 1}}, 10), failed({{"nodes", 2}}, "timeout", "slow")}));
  const auto worse = compare(before, broken, 0.02);
  CHECK(has_regression(*worse));
  CHECK(worse->changes[1].verdict == Verdict::now_fails);
  CHECK_FALSE(has_regression(*compare(broken, before, 0.02)));
  const Bench other = bench_of(bench_json(kAxes, {done({{"nodes", 1}}, 10), done({{"nodes", 4}}, 40)}));
  const auto missing = compare(before, other, 0.02);
  REQUIRE(missing->changes.size() == 3);
  CHECK(missing->changes[1].verdict == Verdict::only_new);
  CHECK(missing->changes[2].verdict == Verdict::only_old);
  CHECK_FALSE(has_regression(*missing));
  CHECK(table_of(other, *missing).notes[0] ==
        "cells: 1 same, 1 only in the old bench, 1 only in the new bench");
}

TEST_CASE("of trainings a lower loss is better, and other axes or units cannot be compared") {
  const auto loss = [](double value) {
    Json point = done({{"nodes", 1}}, 1);
    point["metrics"] = {{"test_loss", value}};
    return bench_of(bench_json(kAxes, {point}, "metrics"));
  };
  CHECK(change_of(loss(0.5), loss(0.4)).verdict == Verdict::better);
  CHECK(change_of(loss(0.5), loss(0.6)).verdict == Verdict::worse);
  const Bench other = bench_of(bench_json({{{"key", "batch"}, {"values", {1}}}}, {done({{"batch", 1}}, 1)}));
  const auto refused = compare(of_rates({1}), other, 0.02);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text().find("only the old bench has the axis 'nodes'") != std::string::npos);
  CHECK_FALSE(compare(of_rates({1}), loss(1), 0.02));
}

TEST_CASE("the order of the axes does not matter") {
  const Json a = {{"key", "nodes"}, {"values", {1}}}, b = {{"key", "batch"}, {"values", {8}}};
  const Json points = {done({{"nodes", 1}, {"batch", 8}}, 5)};
  const auto out = compare(bench_of(bench_json({a, b}, points)), bench_of(bench_json({b, a}, points)), 0.02);
  CHECK(out->changes[0].verdict == Verdict::same);
  CHECK(to_json(bench_of(bench_json({b, a}, points)), *out)["cells"][0]["values"] ==
        Json{{"batch", 8}, {"nodes", 1}});
}
