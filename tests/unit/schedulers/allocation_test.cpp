#include "schedulers/allocation.hpp"

#include <doctest/doctest.h>

#include "src/base/json.hpp"

using namespace dlrun;

namespace {

constexpr const char* kSample = R"({"schema": "dlrun.allocation/1", "scheduler": "slurm", "job_id": "123",
 "array_index": null,
 "nodes": [{"host": "c1", "slots": 4, "cpus": 4, "gpus": ["0", "GPU-8f2c"]},
           {"host": "c2", "slots": 2, "cpus": null, "gpus": null}],
 "end_time": "2026-11-27T21:00:00Z", "evidence": ["SLURM_JOB_NODELIST=c[1-2]"], "warnings": []})";

std::string refused(const std::string& pointer, const Json& value) {
  Json json = parse_json(kSample, "sample").value();
  json[Json::json_pointer(pointer)] = value;
  const auto read = allocation_from_json(json, "a.json");
  if (!read) CHECK(read.error().kind == ErrorKind::allocation);
  return read ? "no error" : read.error().text();
}

}  // namespace

TEST_CASE("the form that tools rely on comes back as it was") {
  const Json json = parse_json(kSample, "sample").value();
  const Allocation read = allocation_from_json(json, "sample").value();
  CHECK(to_json(read) == json);
  CHECK(read.nodes[0].gpus == std::vector<std::string>{"0", "GPU-8f2c"});
  CHECK_FALSE(read.nodes[1].cpus.has_value());  // unknown is nothing, never 0
  CHECK(format_utc(*read.end_time) == "2026-11-27T21:00:00Z");
}

TEST_CASE("what a person leaves out is unknown") {
  const Json json =
      parse_json(R"({"schema": "dlrun.allocation/1", "scheduler": "x", "nodes": [{"host": "c1"}]})", "s")
          .value();
  const Allocation read = allocation_from_json(json, "s").value();
  CHECK(read.nodes[0].slots == 1);
  CHECK_FALSE(read.end_time.has_value());
  CHECK_FALSE(read.job_id.has_value());
}

TEST_CASE("what does not read is an error with the value seen") {
  CHECK(refused("/nodes/0/hots", "c1") ==
        "a.json: node 1: unknown field 'hots'\n  hint: did you mean 'host'?");
  CHECK(refused("/nodes/1/host", "c1") == "a.json: host c1 is listed twice");
  CHECK(refused("/nodes/1/host", "") == "a.json: node 2, field 'host': a host name is empty");
  CHECK(refused("/nodes/0/cpus", -1) ==
        "a.json: node 1: field 'cpus' must be a whole number of at least 1, not -1");
  CHECK(refused("/nodes/0/slots", 1.5) ==
        "a.json: node 1: field 'slots' must be a whole number of at least 1, not 1.5");
  CHECK(refused("/nodes/0/gpus", 2) == "a.json: node 1: field 'gpus' has the wrong type: 2");
  CHECK(refused("/nodes", Json::array()) == "a.json: field 'nodes' is not a list of nodes");
  CHECK(refused("/end_time", "tomorrow") ==
        "a.json: end_time: 'tomorrow' is not a time\n  hint: write it as 2026-11-27T21:00:00Z");
  CHECK(refused("/schema", "dlrun.allocation/9") ==
        "a.json: schema 'dlrun.allocation/9' is not 'dlrun.allocation/1'");
}

TEST_CASE("host names are checked as they are in host lists and host files") {
  for (const char* name :
       {"-oProxyCommand=touch x", "../../x", "a\nb", "a b", "a/b", "n[1-2]", "a,b", ".a"}) {
    CAPTURE(name);
    CHECK(refused("/nodes/0/host", name).starts_with("a.json: node 1, field 'host': "));
    CHECK(refused("/nodes/0/address", name).starts_with("a.json: node 1, field 'address': "));
  }
  for (const char* name : {"gpu-1.cluster.org", "10.0.0.1", "fe80::1", "n_1"})
    CHECK(refused("/nodes/0/host", name) == "no error");
}
