#include "src/health/report.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::health;

namespace {

// So many nodes n1, n2, ... with the same values of one check.
std::vector<NodeAnswers> nodes(int count, const std::string& check, const Json& values) {
  std::vector<NodeAnswers> out;
  for (int i = 1; i <= count; ++i)
    out.push_back({.host = fmt::format("n{}", i), .values = {{check, values}}});
  return out;
}

// "n3 bad clock: ...": a line per finding.
std::string found(const std::vector<NodeAnswers>& answers) {
  std::string out;
  for (const NodeReport& node : judge(Level::quick, "/work", answers).nodes)
    for (const Finding& finding : node.findings)
      out +=
          fmt::format("{} {} {}: {}\n", node.host, kStates.name(finding.state), finding.check, finding.text);
  return out;
}

Json network(double send, double receive) {
  return {{"tried", 3},        {"unreachable", Json::array()},
          {"problem", ""},     {"asked_by", 3},
          {"reached_by", 3},   {"send", send},
          {"receive", receive}};
}

}  // namespace

TEST_CASE("a node without an agent is bad, and the others are judged without it") {
  auto answers = nodes(3, "clock", {{"skew", 0.0}, {"uncertain", 0.01}});
  answers[1] = {.host = "n2", .no_agent = "connection refused"};
  CHECK(found(answers) == "n2 bad agent: connection refused\n");
  const Report report = judge(Level::quick, "/work", answers);
  CHECK(report.bad_hosts() == std::vector<std::string>{"n2"});
  CHECK(report.count(State::good) == 2);
}

TEST_CASE("a value that differs from most is a warning, and two nodes cannot tell who is right") {
  const Json usual{{"kernel", "6.1"}, {"libc", "2.36"}};
  auto answers = nodes(4, "software", usual);
  answers[2].values["software"]["kernel"] = "5.10";
  CHECK(found(answers) == "n3 warning software: kernel: 5.10; 3 of 4 nodes have 6.1\n");
  answers.resize(3);
  answers.erase(answers.begin());
  CHECK(found(answers).empty());
  auto halves = nodes(4, "software", usual);
  halves[0].values["software"]["kernel"] = halves[1].values["software"]["kernel"] = "5.10";
  CHECK(found(halves).empty());
}

TEST_CASE("a tool that one node lacks") {
  auto answers = nodes(3, "software", {{"python3", "/usr/bin/python3"}});
  answers[0].values["software"]["python3"] = nullptr;
  CHECK(found(answers) == "n1 warning software: python3: none; 2 of 3 nodes have /usr/bin/python3\n");
}

TEST_CASE("clocks are compared with the median of the nodes") {
  auto answers = nodes(4, "clock", {{"skew", 100.0}, {"uncertain", 0.01}});
  answers[3].values["clock"]["skew"] = 93.0;
  CHECK(found(answers) == "n4 bad clock: its clock is 7.0s behind\n");
  answers[3].values["clock"]["skew"] = 101.0;
  CHECK(found(answers) == "n4 warning clock: its clock is 1.0s ahead\n");
  // What the way may have taken counts for the node.
  answers[3].values["clock"] = {{"skew", 93.0}, {"uncertain", 8.0}};
  CHECK(found(answers).empty());
}

TEST_CASE("with one node or two, the head's clock is the right one") {
  CHECK(found(nodes(1, "clock", {{"skew", -60.0}, {"uncertain", 0.01}})) ==
        "n1 bad clock: its clock is 1m00s behind\n");
}

TEST_CASE("a file system that refuses a step, and one that is slow") {
  auto answers = nodes(6, "files", {{"directory", "/work"}, {"seconds", 0.01}});
  answers[1].values["files"] = {{"directory", "/work"}, {"error", "rename: Read-only file system"}};
  answers[2].values["files"]["seconds"] = 6.0;
  answers[3].values["files"]["seconds"] = 0.6;
  CHECK(found(answers) ==
        "n2 bad files: rename: Read-only file system\n"
        "n3 bad files: writing, reading and renaming a file in /work takes 6.0s, usually 10ms\n"
        "n4 warning files: writing, reading and renaming a file in /work takes 600ms, usually 10ms\n");
  // A file server that is slow for all is no node's fault.
  CHECK(found(nodes(3, "files", {{"directory", "/work"}, {"seconds", 6.0}})).find("bad") ==
        std::string::npos);
}

TEST_CASE("a full disk, little space, no more files") {
  const Json plenty{{"folder", "/tmp"}, {"free", std::uint64_t{1} << 40}, {"free_files", 100}};
  auto answers = nodes(3, "space", {{"temporary", plenty}, {"shared_memory", plenty}, {"directory", plenty}});
  answers[0].values["space"]["temporary"]["free"] = 0;
  answers[1].values["space"]["shared_memory"] = {{"folder", "/dev/shm"}, {"free", 64 << 20}};
  answers[2].values["space"]["directory"] = {
      {"folder", "/work"}, {"free", std::uint64_t{1} << 40}, {"free_files", 0}};
  CHECK(found(answers) ==
        "n1 bad space: /tmp has 0 B free\n"
        "n2 warning space: /dev/shm has 64.0 MiB free\n"
        "n3 bad space: /work can have no more files\n");
}

TEST_CASE("names that others resolve") {
  const Json usual{
      {"own", "n"}, {"resolves", true}, {"reverse", "n"}, {"unresolved", {"alias"}}, {"seconds", 0.01}};
  auto answers = nodes(3, "names", usual);
  CHECK(found(answers).empty());  // only ssh knows the alias
  answers[2].values["names"]["unresolved"] = {"alias", "n1", "n2"};
  CHECK(found(answers) == "n3 bad names: it cannot resolve alias and 2 more names\n");
}

TEST_CASE("GPUs: fewer than most, errors, heat") {
  auto answers =
      nodes(4, "gpus", {{"count", 8}, {"driver", "1"}, {"gpus", Json::array()}, {"xids", nullptr}});
  answers[0].values["gpus"]["count"] = 7;
  answers[1].values["gpus"] = {{"count", 0}, {"absent", "no NVML library here"}};
  answers[2].values["gpus"]["gpus"] = {{{"index", 3}, {"uncorrected_errors", 2}},
                                       {{"index", 5}, {"slowdown", "thermal slowdown by its hardware"}}};
  answers[3].values["gpus"]["xids"] = {"XID 79 of PCI:0000:3b:00"};
  CHECK(found(answers) ==
        "n1 bad gpus: 7 GPUs; other nodes have 8\n"
        "n2 warning gpus: 0 GPUs; other nodes have 8\n"
        "n2 warning gpus: driver: none; 3 of 4 nodes have 1\n"
        "n3 bad gpus: GPU 3: 2 uncorrected memory errors\n"
        "n3 bad gpus: GPU 5: thermal slowdown by its hardware\n"
        "n4 bad gpus: XID 79 of PCI:0000:3b:00 in the kernel's log of a day\n");
}

TEST_CASE("the network: a slow node, an isolated one, one pair") {
  auto answers = nodes(4, "network", network(1e9, 1e9));
  answers[2].values["network"] = network(1e6, 9e8);
  CHECK(found(answers) == "n3 bad network: it sends 976.6 KiB/s; 953.7 MiB/s is usual\n");
  answers[2].values["network"] = network(1e9, 1e9);
  for (Json* values : {&answers[0].values, &answers[1].values, &answers[2].values})
    (*values)["network"]["unreachable"] = {"n4"}, (*values)["network"]["problem"] = "no answer";
  answers[3].values["network"] = {{"tried", 3},
                                  {"unreachable", {"n1", "n2", "n3"}},
                                  {"problem", "no answer"},
                                  {"asked_by", 3},
                                  {"reached_by", 0}};
  CHECK(found(answers) ==
        "n1 warning network: it cannot reach n4: no answer\n"
        "n2 warning network: it cannot reach n4: no answer\n"
        "n3 warning network: it cannot reach n4: no answer\n"
        "n4 bad network: it cannot reach n1 and 2 more: no answer\n"
        "n4 bad network: 3 of 3 nodes cannot reach it\n");
}

TEST_CASE("of two nodes a slow one is not called bad: its partner may be the one") {
  auto answers = nodes(2, "network", network(1e9, 1e6));
  answers[1].values["network"] = network(1e6, 1e9);
  CHECK(found(answers).find("bad") == std::string::npos);
  CHECK(found(answers).find("n2 warning network: it sends") != std::string::npos);
}

TEST_CASE("what does not answer, and what answers nonsense") {
  auto answers = nodes(1, "files", {{"error", "no answer within 5.0s"}});
  CHECK(found(answers) == "n1 bad files: no answer within 5.0s\n");
  CHECK(found(nodes(1, "names", {{"error", "no answer within 5.0s"}})) ==
        "n1 warning names: no answer within 5.0s\n");
  CHECK(found(nodes(3, "space", Json("text"))).empty());
  CHECK(found(nodes(3, "network", {{"send", "fast"}, {"unreachable", 3}})).empty());
}

TEST_CASE("the checks of this machine can be measured, and find it well enough") {
  NodeAnswers here{.host = "here"};
  for (const Check& check : checks()) {
    if (check.measure == nullptr) continue;
    here.values[std::string(check.name)] = check.measure(
        {.level = Level::quick, .directory = "/tmp", .names = {"localhost"}, .environment = {}});
    CHECK_MESSAGE(here.values[std::string(check.name)].is_object(), check.name);
  }
  CHECK(here.values["files"].contains("seconds"));
  CHECK(here.values["space"]["directory"]["free"].is_number());
  CHECK(here.values["names"]["unresolved"].empty());
  const Json json = to_json(judge(Level::quick, "/tmp", {here}));
  CHECK(json["schema"] == "dlrun.doctor/1");
  CHECK(json["nodes"][0]["host"] == "here");
}

TEST_CASE("a folder that is not there") {
  for (const Check& check : checks())
    if (check.name == "files")
      CHECK(check.measure({.directory = "/nowhere"})["error"] ==
            "cannot create a file: No such file or directory");
}
