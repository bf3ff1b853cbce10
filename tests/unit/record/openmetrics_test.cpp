// The metrics file: every value under its name, labels escaped, and no line for what is not known. The python
// test reads a real run's file with Prometheus' own parsers.
#include "src/record/openmetrics.hpp"

#include <doctest/doctest.h>

#include "src/base/utc.hpp"

using namespace dlrun;
using namespace dlrun::job;

namespace {

HeadStatus of_a_run() {
  HeadStatus out;
  out.name = "a \"b\" \\ c\nd", out.job_id = "id-1", out.framework = "builtin", out.scheduler = "slurm";
  out.scheduler_job = "17", out.nodes = 2, out.ranks = 16, out.stage = HeadStage::running;
  out.began = parse_utc("2026-11-29T19:33:33.500Z").value();
  return out;
}

bool has(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("what is known of a run is in its metrics file, with escaped labels") {
  HeadStatus status = of_a_run();
  status.progress = {{"step", 20}, {"loss", 0.25}, {"phase", "training"}};
  status.steps_per_second = 2.5;
  status.slowest = SlowestRank{.rank = 3, .host = "c2", .step = 18, .behind = 2};
  NodeUsage usage;
  usage.host = "c1", usage.cpu = 0.5, usage.memory_used = 1 << 20;
  status.usage = {usage};
  const std::string text = openmetrics_text(status);
  CHECK(has(text, R"(dlrun_run_info{run="id-1",name="a \"b\" \\ c\nd",framework="builtin",)"
                  R"(scheduler="slurm",scheduler_job="17"} 1)"));
  CHECK(has(text, R"(dlrun_run_stage{run="id-1",stage="running"} 1)"));
  CHECK(has(text, R"(dlrun_run_stage{run="id-1",stage="ended"} 0)"));
  CHECK(has(text, R"(dlrun_run_start_time_seconds{run="id-1"} 1795980813.5)"));
  CHECK(has(text, R"(dlrun_progress{run="id-1",name="loss"} 0.25)"));
  CHECK(has(text, R"(dlrun_progress{run="id-1",name="step"} 20)"));
  CHECK(has(text, R"(dlrun_steps_behind{run="id-1",rank="3",host="c2"} 2)"));
  CHECK(has(text, R"(dlrun_node_cpu_ratio{run="id-1",host="c1"} 0.5)"));
  CHECK(has(text, R"(dlrun_node_memory_used_bytes{run="id-1",host="c1"} 1048576)"));
  CHECK(text.ends_with("\n# EOF\n"));
}

TEST_CASE("what is not known has no line in the metrics file, not even a head") {
  const std::string text = openmetrics_text(of_a_run());
  for (const char* name : {"dlrun_progress", "dlrun_steps_per_second", "dlrun_seconds_left",
                           "dlrun_run_exit_code", "dlrun_run_walltime_end", "dlrun_node_"})
    CHECK_MESSAGE(text.find(name) == std::string::npos, name);
  CHECK(text.find("training") == std::string::npos);
}
