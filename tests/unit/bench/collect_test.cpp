// What a point came to, from the record of its run; and rates in what ranks print; and which nodes a point
// gets.
#include "src/bench/collect.hpp"

#include <doctest/doctest.h>

#include "src/bench/node_share.hpp"
#include "src/bench/rate_lines.hpp"
#include "tests/unit/folder.hpp"
#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;
using bench::EndedBy;
using bench::PointStatus;

namespace {

Json record(int code, const std::string& reason) {
  return {{"exit_code", code},
          {"reason", reason},
          {"began", "2026-11-30T02:00:00Z"},
          {"ended", "2026-11-30T02:00:05Z"},
          {"result", nullptr},
          {"last_progress", nullptr},
          {"attempts",
           {{{"walltime", {{"stop", "none"}}}, {"interrupted_by", nullptr}, {"first_failure", nullptr}}}},
          {"provenance", {{"nodes", {{{"cpus", {{"model", "Some CPU"}}}, {"gpus", nullptr}}}}}}};
}

plan::BenchSpec section(const std::string& keys) {
  return job("command: [x]\nbench: {" + keys + "}\n").value().bench.value();
}

// The point after its run left this record; null: none.
bench::Point collected(const Json& left, EndedBy by = EndedBy::itself, const plan::BenchSpec& spec = {},
                       const std::string& output = "") {
  const Folder folder;
  if (!left.is_null()) folder.write("points/0001/run/record.json", to_text(left));
  if (!output.empty()) folder.write("points/0001/output.txt", output);
  bench::Bench whole{.mode = spec.epochs ? bench::Mode::metrics : bench::Mode::rate};
  bench::Point point{.id = "0001", .run = "points/0001/run"};
  bench::collect(point, whole, spec, folder.path, by);
  return point;
}

}  // namespace

TEST_CASE("a benchmark of the builtin trainer tells the rate, the steps and their parts") {
  Json left = record(0, "done");
  left["result"] = {
      {"images_per_s", 640.0},
      {"steps", 100},
      {"step_ms_median", 100.0},
      {"step_ms", {{"mean", 101.0}, {"std", 2.0}, {"p95", 104.0}}},
      {"memory_mib", {{"peak_of_rank", 2.0}, {"model", 1.0}}},
      {"bound",
       {{"compute_ms", 80.0}, {"communication_ms", 20.0}, {"input_ms", 1.0}, {"gradient_bytes", 4e6}}}};
  const bench::Point point = collected(left);
  CHECK(point.status == PointStatus::done);
  CHECK(point.figures.rate == 640);
  CHECK(point.figures.step_seconds->mean == doctest::Approx(0.101));
  CHECK(point.figures.step_seconds->n == 100);
  CHECK(point.figures.parts.at("exchange") == doctest::Approx(0.02));
  CHECK(point.figures.bytes_per_step == 4e6);
  CHECK(point.figures.max_rss_bytes == 2 << 20);
  CHECK_FALSE(point.figures.gpu_bytes);
  CHECK(point.figures.seconds == 5);
}

TEST_CASE("a benchmark on the CPUs of a node with GPUs counts none of them") {
  for (const std::string device : {"cpu", "cuda"}) {
    CAPTURE(device);
    const bool on_gpu = device == "cuda";
    Json left = record(0, "done");
    left["result"] = {{"images_per_s", 640.0}, {"device", device}, {"memory_mib", {{"model", 1.0}}}};
    left["provenance"]["nodes"][0]["gpus"] = {{"models", {"Some GPU"}}};
    const Folder folder;
    folder.write("points/0001/run/record.json", to_text(left));
    bench::Bench whole{.mode = bench::Mode::rate};
    bench::Point point{.id = "0001", .run = "points/0001/run"};
    bench::collect(point, whole, {}, folder.path, EndedBy::itself);
    CHECK(point.figures.gpu_bytes.has_value() == on_gpu);
    CHECK(whole.gpu == (on_gpu ? Json("Some GPU") : Json()));
    CHECK(whole.cpu == "Some CPU");
  }
}

TEST_CASE("other programs tell a rate in their result, in their reports, or by their steps") {
  Json left = record(0, "done");
  left["attempts"][0]["step_timing"] = {{"seconds_per_step", 0.25}};
  CHECK(collected(left).figures.rate == 4);
  left["last_progress"] = {{"samples_per_s", 7.0}};
  CHECK(collected(left).figures.rate == 7);
  left["result"] = {{"rate", 8.0}};
  CHECK(collected(left).figures.rate == 8);
  const bench::Point none = collected(record(0, "done"));
  CHECK(none.status == PointStatus::failed);
  CHECK(none.why == "no rate was measured: the program reported neither a rate nor steps");
}

TEST_CASE("a rate that is below 0, or beyond what any program does, fails its point") {
  Json left = record(0, "done");
  for (const double wrong : {-5.0, 1e308, 2e15}) {
    left["result"] = {{"rate", wrong}};
    const bench::Point point = collected(left);
    CHECK(point.status == PointStatus::failed);
    CHECK_FALSE(point.figures.rate);
    CHECK(point.why == fmt::format("{:g} is no rate: expected a number from 0 to 1e+15", wrong));
  }
  left["result"] = {{"rate", 1e15}};
  CHECK(collected(left).status == PointStatus::done);
}

TEST_CASE("a training gives its final metrics") {
  Json left = record(0, "done");
  left["result"] = {{"accuracy", 0.9}, {"loss", 0.3}, {"name", "x"}};
  const bench::Point point = collected(left, EndedBy::itself, section("epochs: 2"));
  CHECK(point.figures.metrics == std::map<std::string, double>{{"accuracy", 0.9}, {"loss", 0.3}});
}

TEST_CASE("a point that did not end well says why") {
  const bench::Point failed = collected(record(3, "worker 0 on n1: exit code 3\nmore"));
  CHECK(failed.status == PointStatus::failed);
  CHECK(failed.why == "worker 0 on n1: exit code 3");
  for (const char* said :
       {"RuntimeError: CUDA out of memory. Tried", "no memory left for model 'resnet50'",
        "model 'resnet50' does not come up: the GPU has no room for 158783 MiB of activations"})
    CHECK(collected(record(1, said)).status == PointStatus::out_of_memory);
  Json late = record(143, "cancelled");
  late["last_progress"] = {{"step", 45}};
  const bench::Point timeout = collected(late, EndedBy::limit, section("limit: 60s"));
  CHECK(timeout.status == PointStatus::timeout);
  CHECK(timeout.why == "no end within 1m00s; the last step was 45");
}

TEST_CASE("a point that was stopped is tried again") {
  CHECK(collected(record(130, "interrupted by SIGINT (2)"), EndedBy::stop).status == PointStatus::pending);
  Json left = record(75, "stopped with a valid checkpoint");
  left["attempts"][0]["walltime"]["stop"] = "asked";
  CHECK(collected(left).status == PointStatus::pending);
  CHECK(collected(left, EndedBy::scheduler).status == PointStatus::timeout);
  CHECK(collected(nullptr, EndedBy::stop).status == PointStatus::pending);
}

TEST_CASE("without a record the error that dlrun printed is the reason") {
  const bench::Point point =
      collected(nullptr, EndedBy::itself, {}, "x\ndlrun: error: no host n9\n  hint: y\n");
  CHECK(point.status == PointStatus::failed);
  CHECK(point.why == "no host n9");
  CHECK(collected(nullptr).why == "its run has no record");
}

TEST_CASE("rates are the first group, a line each") {
  const auto pattern = bench::RatePattern::of("rate: ([0-9.,]+)", "job.yaml:3:4").value();
  CHECK(pattern.rates_in("rate: 1,200.5 img\nelse\nrate: 7").value() == std::vector<double>{1200.5, 7});
  CHECK(pattern.rates_in("rate: 1,234,567").value() == std::vector<double>{1234567});
  for (const char* comma : {"rate: 1,5", "rate: 1234,567", "rate: ,123", "rate: 1,23.5", "rate: 12,3456"})
    CHECK(error_of(pattern.rates_in(comma)).find("a comma may stand between groups of three digits") !=
          std::string::npos);
  CHECK(pattern.rates_in("").value().empty());
  const auto whole = bench::RatePattern::of("x", "job.yaml:3:4").value();
  CHECK(error_of(whole.rates_in("a x"))
            .starts_with("job.yaml:3:4: bench.rate matched \"x\", which is not a number"));
  CHECK(error_of(bench::RatePattern::of("(", "job.yaml:3:4"))
            .starts_with("job.yaml:3:4: bench.rate: '(' is not a regular expression"));
  CHECK(pattern.rates_in(std::string(1 << 20, 'r')).value().empty());
}

TEST_CASE("a rate expression that could match in many ways takes no longer") {
  const std::string line(2000, 'a');
  for (const char* expression :
       {"(a+)+b([0-9]+)", "(a|aa)+b", "(a*)*(a*)*b", "(.*a){20}b", "a?a?a?a?a?a?a?a?a?b"})
    CHECK(bench::RatePattern::of(expression, "job.yaml:3:4").value().rates_in(line).value().empty());
  const auto nested = bench::RatePattern::of("(?:a+)+b([0-9]+)", "job.yaml:3:4").value();
  CHECK(nested.rates_in(line.substr(0, 1000) + "b7").value() == std::vector<double>{7});
}

TEST_CASE("rate expressions may be those of Python or grep -E") {
  const auto rate = [](const std::string& expression, const std::string& line) {
    return bench::RatePattern::of(expression, "f").value().rates_in(line).value().at(0);
  };
  CHECK(rate(R"((\d+\.?\d*) img/s)", "12.5 img/s") == 12.5);
  CHECK(rate(R"((?:speed|rate)[:=]\s*([\d.,e+\-]+))", "x speed= 1.2e+1") == 12);
  CHECK(rate(R"(\[rate\] ([[:digit:]]{1,4}))", "[rate] 77 777") == 77);
  CHECK(rate(R"([\^\]]\/([^\s\]]+))", "a]/5]") == 5);
  CHECK(rate(R"([\^](\w+)\b)", "^3 x") == 3);
  CHECK(rate("rate (.*)", std::string("ra\0te 8", 7)) == 8);
  const auto refused = [](const std::string& expression) {
    return error_of(bench::RatePattern::of(expression, "f"));
  };
  CHECK(refused(R"((a)\1)").find("back-references are not supported") != std::string::npos);
  CHECK(refused("(.*?) img").find("lazy repetition, as in '.*?', is not supported") != std::string::npos);
  CHECK(refused("(?=a)").find("only (?:...) is supported") != std::string::npos);
  CHECK(refused("((a{9}){99}){9}").find("its repetitions come to more than 1000") != std::string::npos);
  CHECK(refused("a{99999}").find("99999") != std::string::npos);
  CHECK(refused(R"(\q)").find("unknown escape '\\q'") != std::string::npos);
  CHECK(refused("[a").find("'[' has no ']'") != std::string::npos);
  CHECK(refused("a\\").find("ends in a backslash") != std::string::npos);
}

TEST_CASE("points at the same time have different nodes") {
  bench::NodeShare nodes(4);
  const auto first = nodes.take(1), second = nodes.take(2);
  CHECK(first == std::vector<std::size_t>{0});
  CHECK(second == std::vector<std::size_t>{1, 2});
  CHECK_FALSE(nodes.take(2));
  nodes.give_back(*first);
  CHECK(nodes.take(2) == std::vector<std::size_t>{0, 3});
  Allocation whole;
  for (const char* host : {"a", "b", "c", "d"}) whole.nodes.push_back(node(host, 1));
  const Allocation part = bench::part_of(whole, *second);
  CHECK(part.nodes.size() == 2);
  CHECK(part.nodes[0].host == HostName("b"));
}
