// status.json: what is written reads back, and what is another's is refused.
#include "src/record/head_status.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "src/base/utc.hpp"
#include "src/record/hosts_request.hpp"
#include "src/record/stacks_request.hpp"
#include "src/record/stop_request.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::job;

namespace {

HeadStatus full() {
  HeadStatus out{.process = this_process(),
                 .name = "small",
                 .job_id = "20261129-193333-ed15",
                 .framework = "builtin",
                 .scheduler = "slurm",
                 .scheduler_job = "17",
                 .nodes = 2,
                 .ranks = 16,
                 .began = parse_utc("2026-11-29T19:33:33Z").value(),
                 .written = parse_utc("2026-11-29T19:34:00.500Z").value(),
                 .beats = 7,
                 .stage = HeadStage::running,
                 .phase = "training"};
  out.progress = {{"step", 20}, {"steps", 60}};
  out.steps_per_second = 2.5;
  out.left = Seconds(16);
  out.walltime_end = parse_utc("2026-11-29T21:00:00Z");
  out.slowest = SlowestRank{.rank = 3, .host = "c2", .step = 18, .behind = 2};
  NodeUsage usage;
  usage.host = "c1", usage.cpu = 0.5, usage.memory_used = 1 << 20, usage.memory_total = 1 << 30;
  out.usage = {usage};
  return out;
}

}  // namespace

TEST_CASE("a head's status reads back as it was written") {
  const Json written = to_json(full());
  const HeadStatus read = head_status_from_json(written, "status.json").value();
  CHECK(to_json(read) == written);
  CHECK(read.process == full().process);
  CHECK(written.at("seconds_left") == 16);
  CHECK(written.at("usage").at(0).at("gpu").is_null());
}

TEST_CASE("an end reads back, and what is not known stays unset") {
  HeadStatus ended;
  ended.process = this_process(), ended.stage = HeadStage::ended;
  ended.exit_code = 75;
  const HeadStatus read = head_status_from_json(to_json(ended), "status.json").value();
  CHECK(read.exit_code == 75);
  CHECK_FALSE(read.scheduler_job);
  CHECK_FALSE(read.left);
  CHECK_FALSE(read.slowest);
}

TEST_CASE("what is no status is refused with its place") {
  Json other = to_json(full());
  other["schema"] = "dlrun.head/2";
  CHECK(head_status_from_json(other, "run/status.json").error().what.find("run/status.json") == 0);
  other = to_json(full());
  other["stage"] = "dancing";
  CHECK(head_status_from_json(other, "s").error().what == "s: unknown stage 'dancing'");
  other = to_json(full());
  other["began"] = "yesterday";
  CHECK(head_status_from_json(other, "s").error().what == "s: field 'began': 'yesterday' is not a time");
  CHECK_FALSE(head_status_from_json(Json(3), "s"));
}

TEST_CASE("of two requests to stop the more urgent one counts") {
  const test::Folder folder;
  CHECK(requested_stop(folder.path) == RunStop::none);
  REQUIRE(request_stop(folder.path, RunStop::save));
  CHECK(requested_stop(folder.path) == RunStop::save);
  REQUIRE(request_stop(folder.path, RunStop::now));
  REQUIRE(request_stop(folder.path, RunStop::save));
  CHECK(requested_stop(folder.path) == RunStop::now);
  CHECK_FALSE(request_stop("/nowhere", RunStop::save));
}

TEST_CASE("requests that are no files are none, and are not waited for") {
  const test::Folder folder;
  for (const char* name : {"stop-request", "stacks-request", "hosts-request.json"})
    REQUIRE(::mkfifo((folder.path / name).c_str(), 0600) == 0);
  CHECK(requested_stop(folder.path) == RunStop::none);
  CHECK(requested_stacks(folder.path).empty());
  CHECK_FALSE(requested_hosts(folder.path).has_value());
}

TEST_CASE("a request for other nodes is read as it was written; what is none is an error that names it") {
  const test::Folder folder;
  const HostsRequest asked{.id = "4711", .change = HostsChange::join, .hosts = {"c5", "c6"}};
  REQUIRE(request_hosts(folder.path, asked).has_value());
  CHECK(requested_hosts(folder.path) == asked);
  const auto why = [](const char* text) {
    return hosts_request_from_json(parse_json(text, "f").value(), "f").error().text();
  };
  CHECK(why(R"({"id": "1", "change": "go", "hosts": ["c1"]})") == "f: change is 'go', not leave or join");
  CHECK(why(R"({"id": "1", "change": "leave", "hosts": []})") == "f: no id, or no hosts");
  CHECK(why(R"({"change": "leave", "hosts": ["c1"]})").find("id") != std::string::npos);
}
