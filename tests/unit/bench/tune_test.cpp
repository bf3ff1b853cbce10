// Successive halving: the candidates, the rounds, who goes on, and the lines that come out.
#include "src/bench/tune.hpp"

#include <doctest/doctest.h>

#include "tests/unit/folder.hpp"
#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;
using bench::Tuned;

namespace {

using Texts = std::vector<std::string>;
using Steps = std::vector<std::uint64_t>;
using Points = std::vector<std::size_t>;

bench::Bench with_rates(const std::vector<double>& rates) {
  bench::Bench out{.axes = {{"threads", {}}}};
  for (const double rate : rates) {
    const auto value = static_cast<int>(out.points.size());
    out.axes[0].values.push_back(value);
    bench::Point point{.id = "x", .values = {{"threads", value}}, .status = bench::PointStatus::failed};
    if (rate > 0) point.figures.rate = rate, point.status = bench::PointStatus::done;
    out.points.push_back(std::move(point));
  }
  return out;
}

}  // namespace

TEST_CASE("threads are tried in powers of two, with all cores and a few less") {
  CHECK(bench::candidates(Tuned::threads, 68, 0) == Texts{"1", "2", "4", "8", "16", "32", "64", "68"});
  CHECK(bench::candidates(Tuned::threads, 2, 0) == Texts{"1", "2"});
  CHECK(bench::candidates(Tuned::threads, 1, 0) == Texts{"1"});
  CHECK(bench::candidates(Tuned::batch, 1, 2) == Texts{"1", "2", "4", "8", "16"});
  CHECK(bench::candidates(Tuned::memory, 1, 1) == Texts{"system", "local", "interleave"});
  CHECK(bench::candidates(Tuned::algorithm, 1, 1).empty());
}

TEST_CASE("each round takes twice the steps of the one before, and the last one all") {
  CHECK(bench::rounds_of(1, 100) == Steps{100});
  CHECK(bench::rounds_of(2, 100) == Steps{100});
  CHECK(bench::rounds_of(8, 100) == Steps{25, 50, 100});
  CHECK(bench::rounds_of(64, 20) == Steps{5, 5, 5, 5, 10, 20});
  CHECK(bench::rounds_of(4, 3) == Steps{3, 3});
}

TEST_CASE("the better half goes on, and what failed does not") {
  CHECK(bench::better_half(with_rates({1, 4, 2, 3}), {0, 1, 2, 3}) == Points{1, 3});
  CHECK(bench::better_half(with_rates({1, 4, 2}), {0, 1, 2}) == Points{1, 2});
  CHECK(bench::better_half(with_rates({0, 4, 0, 0}), {0, 1, 2, 3}) == Points{1});
  CHECK(bench::better_half(with_rates({0, 0}), {0, 1}).empty());
  CHECK(bench::better_half(with_rates({5}), {0}) == Points{0});
}

TEST_CASE("the curve has the last measurement of each value") {
  bench::Bench tuned = with_rates({1, 4});
  tuned.points.push_back(tuned.points[1]);
  CHECK(bench::last_rounds(tuned) == Points{0, 2});
}

TEST_CASE("threads are remembered for processors that a run told") {
  const Folder folder;
  bench::OpenBench open{.request = {}, .folder = folder.path, .points = {}, .bench = with_rates({1})};
  open.bench.points[0].run = "run";
  const auto error = [&](const std::string& record) {
    folder.write("run/record.json", record);
    return error_of(bench::remember_threads(open, 0));
  };
  CHECK(error(R"({"attempts": [{"ranks": [{"processors": [0, 1]}]}]})")
            .ends_with("no run lasted long enough to tell the model of the processors"));
  open.bench.cpu = "Some CPU";
  CHECK(error(R"({"attempts": [{"ranks": []}]})")
            .ends_with("the record of its run does not tell the processors of the ranks"));
}

TEST_CASE("the lines are those of a job file") {
  CHECK(bench::job_lines("environment.set.OMP_NUM_THREADS", 64) ==
        "environment:\n  set:\n    OMP_NUM_THREADS: \"64\"");
  CHECK(bench::job_lines("train.allreduce.bucket", "8MiB") == "train:\n  allreduce:\n    bucket: 8MiB");
  CHECK(bench::job_lines("launch.memory", "local") == "launch:\n  memory: local");
  CHECK(bench::job_lines("train.batch", 32) == "train:\n  batch: 32");
}

TEST_CASE("any axis is tuned but those that set no value of a job file") {
  for (const char* axis :
       {"threads", "batch", "tasks-per-node", "servers", "launch.huge-pages", "train.optimizer.name"})
    CHECK(bench::check_tuned(axis));
  CHECK(error_of(bench::check_tuned("thread")).find("did you mean 'threads'?") != std::string::npos);
  for (const char* axis : {"data", "global-batch", "bench.steps"}) CHECK_FALSE(bench::check_tuned(axis));
}
