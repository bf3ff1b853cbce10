// How a run stands: by its record, its head's word, or the head's death.
#include "src/report/run_state.hpp"

#include <doctest/doctest.h>

#include "src/base/utc.hpp"
#include "src/report/head_life.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::report;

namespace {

RunFolder folder_with(Json record) {
  return {.path = "/runs/small", .plan = {}, .allocation = {}, .status = {}, .record = std::move(record)};
}
Json ended(int code, Json attempt = Json::object()) {
  return {{"exit_code", code}, {"reason", "because"}, {"attempts", Json::array({std::move(attempt)})}};
}
job::HeadStatus head_in(job::HeadStage stage) {
  job::HeadStatus out;
  out.process.host = "c1", out.process.pid = 4711;
  out.stage = stage;
  out.written = parse_utc("2026-11-29T20:00:00Z").value();
  return out;
}

}  // namespace

TEST_CASE("a record tells the end") {
  CHECK(standing_of(folder_with(ended(0)), std::nullopt, Life::unknown).state == RunState::done);
  const Standing failed = standing_of(folder_with(ended(3)), std::nullopt, Life::unknown);
  CHECK(failed.state == RunState::failed);
  CHECK(failed.exit_code == 3);
  CHECK(failed.reason == "because");
  CHECK(standing_of(folder_with(ended(75)), std::nullopt, Life::unknown).state == RunState::stopped);
  const Json by_signal{{"first_failure", nullptr}, {"interrupted_by", "SIGTERM"}, {"cancelled_by", nullptr}};
  CHECK(standing_of(folder_with(ended(143, by_signal)), std::nullopt, Life::unknown).state ==
        RunState::stopped);
  const Json failure{{"first_failure", {{"rank", 0}}}, {"interrupted_by", "SIGTERM"}};
  CHECK(standing_of(folder_with(ended(1, failure)), std::nullopt, Life::unknown).state == RunState::failed);
}

TEST_CASE("a head that lives tells how far it is") {
  const RunFolder run = folder_with(nullptr);
  using job::HeadStage;
  CHECK(standing_of(run, head_in(HeadStage::starting), Life::alive).state == RunState::starting);
  CHECK(standing_of(run, head_in(HeadStage::running), Life::alive).state == RunState::running);
  CHECK(standing_of(run, head_in(HeadStage::stopping), Life::alive).state == RunState::stopping);
}

TEST_CASE("without a record, as on a full disk, the head's last word is the end") {
  job::HeadStatus head = head_in(job::HeadStage::ended);
  head.exit_code = 130;
  CHECK(standing_of(folder_with(nullptr), head, Life::ended).state == RunState::failed);
  head.stopped = true;
  CHECK(standing_of(folder_with(nullptr), head, Life::ended).state == RunState::stopped);
}

TEST_CASE("a run without record whose head is gone is lost, and says whose") {
  const Standing gone = standing_of(folder_with(nullptr), head_in(job::HeadStage::running), Life::ended);
  CHECK(gone.state == RunState::lost);
  CHECK(gone.reason ==
        "its head, process 4711 on c1, is gone and wrote no record; last sign of life 2026-11-29T20:00:00Z");
  const Standing silent = standing_of(folder_with(nullptr), head_in(job::HeadStage::running), Life::unknown);
  CHECK(silent.state == RunState::lost);
  CHECK(silent.reason.find("no sign of life since 2026-11-29T20:00:00Z") != std::string::npos);
  CHECK(standing_of(folder_with(nullptr), std::nullopt, Life::unknown).state == RunState::lost);
}

TEST_CASE("a head that could write its status and no record still told its end") {
  job::HeadStatus head = head_in(job::HeadStage::ended);
  head.exit_code = 74;
  head.reason = "no space left on device";
  const Standing standing = standing_of(folder_with(nullptr), head, Life::ended);
  CHECK(standing.state == RunState::failed);
  CHECK(standing.reason == "no space left on device");
}

TEST_CASE("a status that does not read is a problem, and no head") {
  RunFolder run = folder_with(nullptr);
  run.status = Json{{"schema", "other/1"}};
  CHECK_FALSE(head_of(run));
  REQUIRE(run.problems.size() == 1);
  CHECK(run.problems[0].find("/runs/small/status.json") == 0);
}

TEST_CASE("the kernel's word counts first, then a fresh file; an old one must be watched") {
  CHECK(first_judgement(Life::ended, Seconds(0)) == Life::ended);
  CHECK(first_judgement(Life::alive, Seconds(1000)) == Life::alive);
  CHECK(first_judgement(Life::unknown, Seconds(1)) == Life::alive);
  CHECK(first_judgement(Life::unknown, Seconds(100)) == Life::unknown);
  CHECK(first_judgement(Life::unknown, Seconds(-100)) ==
        Life::unknown);  // a clock that is ahead proves nothing
}

TEST_CASE("a head on another machine lives if its file is written again while it is watched") {
  const test::Folder folder;
  const Instant now = parse_utc("2026-11-29T21:00:00Z").value();
  const auto sign = [&](const char* name) {
    job::HeadStatus status = head_in(job::HeadStage::running);
    status.beats = 5;
    folder.write(std::string(name) + "/status.json", to_pretty_text(job::to_json(status)));
    return HeadSign{folder.path / name, status};
  };
  const std::vector<HeadSign> heads{sign("dead"), sign("live")};
  int pauses = 0;
  const auto pause = [&](Seconds) {
    if (++pauses != 3) return;
    job::HeadStatus status = heads[1].status;
    status.beats = 6;
    folder.write("live/status.json", to_pretty_text(job::to_json(status)));
  };
  CHECK(lives_of(heads, now, pause) == std::vector<Life>{Life::unknown, Life::alive});
  CHECK(pauses == 16);  // eight seconds for both together
}
