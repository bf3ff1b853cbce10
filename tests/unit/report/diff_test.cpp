// What differs between two runs, and what counts as equal.
#include "src/report/diff/diff.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::report;

namespace {

DiffRun run(const std::string& id) {
  DiffRun out{.path = "/runs/" + id, .spec = {}, .plan = {}, .record = {}};
  out.spec = {{"name", "small"}, {"train", {{"batch", 64}}}};
  out.plan = {{"job_id", id},
              {"run_directory", "/runs/" + id},
              {"nodes", Json::array({{{"host", "c1"}}})},
              {"environment", {{"DLRUN_RUN_DIR", "/runs/" + id}, {"DLRUN_JOB_ID", id}}},
              {"ranks", Json::array({{{"node", 0}, {"argv", {"train", "/runs/" + id + "/file"}}}})}};
  out.record = {
      {"exit_code", 0},
      {"result", {{"test_accuracy", 0.98}, {"images_per_s", 1000.0}}},
      {"time", {{"total", 20.0}}},
      {"attempts", Json::array({{{"step_timing", {{"seconds_per_step", 0.010}, {"start", 0.3}}}}})}};
  out.provenance = {{"git", {{"commit", "aaa"}}},
                    {"nodes", Json::array({{{"hosts", "c1"}, {"cpus", {{"model", "Fast"}}}}})},
                    {"program",
                     {{"modules", {"cuda/11.8", "gcc/12"}},
                      {"libraries", {{"/usr/lib/libz.so.1.2", "1111"}, {"/usr/lib/libm.so.6", "2222"}}},
                      {"versions", {{"NCCL", "2.18.3"}}},
                      {"python", nullptr},
                      {"variables", {{"NCCL_DEBUG", "INFO"}}}}}};
  return out;
}

// "section name" of each.
std::vector<std::string> names(const RunDiff& diff) {
  std::vector<std::string> out;
  for (const Difference& each : diff.differences) out.push_back(each.section + " " + each.name);
  return out;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE(
    "runs of one job differ in nothing, whatever they are called and however their times vary a little") {
  DiffRun a = run("a-1"), b = run("b-2");
  b.record["attempts"][0]["step_timing"]["seconds_per_step"] = 0.0105;
  b.record["attempts"][0]["step_timing"]["start"] = 0.9;
  b.record["result"]["images_per_s"] = 950.0;
  const RunDiff diff = diff_of(a, b, 0.1);
  CHECK(names(diff).empty());
  CHECK(diff.unknown.empty());
  CHECK(to_json(diff, a, b)["same"] == true);
}

TEST_CASE("what differs is told in the order of how much it tells") {
  DiffRun a = run("a-1"), b = run("b-2");
  b.record["exit_code"] = 3, b.record["reason"] = "worker 0 on c1: exit code 3";
  b.record["result"]["test_accuracy"] = 0.5;
  b.record["attempts"][0]["step_timing"]["seconds_per_step"] = 0.020;
  b.spec["train"]["batch"] = 32;
  b.provenance["git"]["commit"] = "bbb";
  b.provenance["program"]["modules"] = {"cuda/12.1", "gcc/12", "ucx"};
  b.provenance["program"]["libraries"] = {{"/usr/lib/libz.so.1.3", "3333"}, {"/usr/lib/libm.so.6", "2222"}};
  b.provenance["program"]["versions"]["NCCL"] = "2.21.5";
  b.provenance["program"]["variables"]["NCCL_DEBUG"] = "WARN";
  b.provenance["nodes"][0]["cpus"]["model"] = "Slow";
  b.plan["nodes"][0]["host"] = "c2";
  const RunDiff diff = diff_of(a, b, 0.1);
  CHECK(names(diff) == Names{"outcome exit code", "outcome reason", "result test_accuracy",
                             "times seconds per step", "git commit", "job train.batch", "modules cuda",
                             "modules ucx", "versions NCCL", "environment NCCL_DEBUG", "libraries libz.so",
                             "machines cpus.model", "hosts hosts"});
  CHECK(diff.differences[3].ratio == doctest::Approx(2));
  CHECK(diff.differences[10].b == "/usr/lib/libz.so.1.3 (3333)");
  CHECK(diff.differences[6].a == "11.8");
}

TEST_CASE("what one of them does not tell is unknown and no difference; what neither tells is nothing") {
  DiffRun a = run("a-1"), b = run("b-2");
  b.provenance["program"] = nullptr;
  const RunDiff diff = diff_of(a, b, 0.1);
  CHECK(names(diff).empty());
  REQUIRE(diff.unknown.size() == 4);
  CHECK(diff.unknown[0].section == "modules");
  CHECK(diff.unknown[0].b);
  CHECK_FALSE(diff.unknown[0].a);
  CHECK(to_json(diff, a, b)["unknown"][0] == Json{{"section", "modules"}, {"run", "b"}});
}

TEST_CASE("a run without a record has what its events tell") {
  const std::vector<Json> events{
      {{"event", "planned"}},
      {{"event", "provenance"}, {"host", "c1"}, {"node", {{"cpus", 1}}}},
      {{"event", "provenance"}, {"host", "c1"}, {"program", {{"versions", {{"NCCL", "2"}}}}}},
      {{"event", "provenance"}, {"data", {{"fingerprint", "ab"}}}}};
  const Json found = provenance_of_events(events);
  CHECK(found["nodes"].size() == 1);
  CHECK(found["program"]["versions"]["NCCL"] == "2");
  CHECK(found["data"]["fingerprint"] == "ab");
}
