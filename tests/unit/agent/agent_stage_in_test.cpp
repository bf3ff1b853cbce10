// The agent's part in what a job stages: in which order things are done, and what follows of each failure.
#include <doctest/doctest.h>

#include "tests/unit/agent/agent_fixture.hpp"

using namespace dlrun;
using namespace dlrun::agent;
using namespace dlrun::agent::test;

namespace {

plan::NodeSlice with_stage(int node) {
  plan::NodeSlice slice = two_ranks();
  slice.plan.stage = {"/tmp/dlrun-staged-job-1", {{.name = "data", .from = "/project/data"}}};
  for (plan::RankPlan& rank : slice.plan.ranks) rank.node = NodeIndex(node);
  slice.node = NodeIndex(node);
  return slice;
}

const Json kSources = Json::array({{{"fingerprint", "ab"}, {"bytes", 5}, {"files", 1}}});

/// Copies from the first node.
Bench copying(const plan::NodeSlice& slice = with_stage(1)) {
  Bench bench;
  bench.prepare(slice);
  bench.says(to_agent::StageIn{"secret", kSources});
  bench.on(event::StageClaimed{protocol::from_agent::StageNeeds{{0}, 4711, {"10.0.0.2"}}});
  bench.says(to_agent::StageChain{{0}, NodeIndex(0), {"10.0.0.1"}, 4710, std::nullopt});
  return bench;
}

}  // namespace

TEST_CASE("a node surveys what there is to stage where it is told so, and tells the head") {
  Bench bench;
  bench.begin();
  bench.slice(with_stage(0));
  CHECK(bench.says(to_agent::StageSurvey{}).empty());
  CHECK(bench.on(event::NodePrepared{}) == "wake above 0; survey stage");
  CHECK(bench.on(event::StageSurveyed{kSources}) ==
        R"(say stage_sources sources=[{"fingerprint":"ab","bytes":5,"files":1}])");
}

TEST_CASE("every node says what it lacks, copies it as it is told, and only then runs its prolog") {
  Bench bench;
  bench.begin();
  bench.slice(with_stage(1));
  CHECK(bench.on(event::NodePrepared{}) == "wake above 0");
  CHECK(bench.says(to_agent::StageIn{"secret", kSources}) ==
        R"(claim stage [{"fingerprint":"ab","bytes":5,"files":1}] with secret)");
  CHECK(bench.on(event::StageClaimed{protocol::from_agent::StageNeeds{{0}, 4711, {"10.0.0.2"}}}) ==
        R"(say stage_needs items=[0] port=4711 addresses=["10.0.0.2"])");
  CHECK(bench.says(to_agent::StageChain{{0}, NodeIndex(0), {"10.0.0.1"}, 4710, std::nullopt}) ==
        "copy 1 items from 0");
  CHECK(bench.on(event::StageMoved{3}) == "say stage_moved bytes=3");
  bench.now = 2;
  CHECK(bench.on(event::StageCopied{1, 5}) ==
        "say staged seconds=2.0 bytes=5 copied=1; open /run/logs/prolog-0002-n2.log");
}

TEST_CASE("what cannot be staged ends the run: nothing runs, and what was copied is removed first") {
  Bench bench = copying();
  const Error full{.kind = ErrorKind::io, .what = "cannot write /tmp/x: no space left on device"};
  CHECK(bench.on(event::StageCopied{fail(full), 3}) ==
        "say error kind=5 what=cannot write /tmp/x: no space left on device where= hint= also=[]; remove "
        "stage");
  CHECK(bench.on(event::StageRemoved{{"/tmp/x is left: busy"}}) ==
        "say log text=/tmp/x is left: busy; end strays");
  CHECK(bench.on(event::StraysGone{0}) == "close ranks");
}

TEST_CASE("a connection that was lost is told only where nobody else has told why") {
  const Error lost{.kind = ErrorKind::lost, .what = "the connection to n1 was lost"};
  SUBCASE("nobody has") {
    Bench bench = copying();
    CHECK(bench.on(event::StageCopied{fail(lost), 3}) == "wake stage 5");
    bench.now = 5;
    CHECK(bench.on(event::StageDue{}) ==
          "say error kind=4 what=the connection to n1 was lost where= hint= also=[]; remove stage");
  }
  SUBCASE("the head has stopped the run since") {
    Bench bench = copying();
    bench.on(event::StageCopied{fail(lost), 3});
    bench.says(to_agent::Stop{});
    CHECK(bench.on(event::StageDue{}).empty());
  }
}

TEST_CASE("where another node is lost, what is copied goes, and all is copied anew") {
  Bench bench = copying();
  CHECK(bench.says(to_agent::StageDrop{}) == "remove stage");
  CHECK(bench.on(event::StageMoved{3}).empty());
  CHECK(bench.on(event::StageCopied{fail(ErrorKind::lost, "the staging was stopped"), 3}).empty());
  SUBCASE("it begins again, and may read itself") {
    CHECK(bench.on(event::StageRemoved{}) == "say stage_dropped");
    CHECK(bench.says(to_agent::StageSurvey{}) == "survey stage");
    bench.on(event::StageSurveyed{kSources});
    CHECK(bench.says(to_agent::StageIn{"secret", kSources}).starts_with("claim stage"));
    bench.on(event::StageClaimed{protocol::from_agent::StageNeeds{{0}, 4711, {"10.0.0.2"}}});
    CHECK(bench.says(to_agent::StageChain{{0}, std::nullopt, {}, 0, std::nullopt}) == "copy 1 items");
    CHECK(bench.on(event::StageCopied{1, 5}).starts_with("say staged"));
  }
  SUBCASE("something cannot be removed") {
    CHECK(
        bench.on(event::StageRemoved{{"/tmp/x is left: busy"}}) ==
        "say log text=/tmp/x is left: busy; say error kind=5 what=staging cannot begin anew: /tmp/x is left: "
        "busy where= hint= also=[]; remove stage");
  }
  SUBCASE("the run is stopped meanwhile") {
    CHECK(bench.says(to_agent::Stop{}).find("remove stage") == std::string::npos);
    CHECK(bench.on(event::StageRemoved{}) == "end strays");
  }
}

TEST_CASE("a node that has all keeps it, and one that is not prepared has nothing to drop") {
  Bench ready = copying();
  ready.on(event::StageCopied{1, 5});
  CHECK(ready.says(to_agent::StageDrop{}).empty());
  Bench early;
  early.begin();
  early.slice(with_stage(0));
  early.says(to_agent::StageSurvey{});
  CHECK(early.says(to_agent::StageDrop{}) == "say stage_dropped");
  CHECK(early.on(event::NodePrepared{}) == "wake above 0");
}

TEST_CASE("what a node that joins is to stage may be told before it is prepared") {
  Bench bench;
  bench.begin();
  bench.slice(with_stage(1));
  CHECK(bench.says(to_agent::StageIn{"secret", kSources}).empty());
  CHECK(bench.on(event::NodePrepared{}).starts_with("wake above 0; claim stage"));
}

TEST_CASE("agents of an elastic job leave the head the time to notice a lost node before they fail") {
  plan::NodeSlice slice = with_stage(1);
  slice.plan.elastic = plan::Elastic{};
  Bench bench = copying(slice);
  CHECK(bench.on(event::StageCopied{fail(ErrorKind::lost, "the connection to n1 was lost"), 3}) ==
        "wake stage 15");
  bench.now = 14;
  CHECK(bench.on(event::StageDue{}).empty());
  bench.now = 15;
  CHECK(bench.on(event::StageDue{}).starts_with("say error kind=4 what=the connection to n1 was lost"));
}

TEST_CASE("a run that is stopped while it stages removes what it has copied") {
  Bench bench = copying();
  CHECK(bench.says(to_agent::Stop{}).ends_with("remove stage"));
  CHECK(bench.on(event::StageRemoved{}) == "end strays");
  CHECK(bench.on(event::StraysGone{0}) == "close ranks");
  CHECK(bench.on(event::StageCopied{1, 5}).empty());
}

TEST_CASE("after the ranks, what was staged is removed once no process of theirs is left") {
  Bench bench = copying();
  bench.on(event::StageCopied{1, 5});
  bench.on(event::LogsOpened{});
  bench.on(event::PrologStarted{});
  bench.on(event::PrologExited{});
  bench.on(event::PrologRead{Environment::from_entries({"PATH=/bin"})});
  bench.says(to_agent::Go{});
  bench.on(event::LogsOpened{});
  bench.started(0);
  bench.started(1);
  bench.on(event::RanksStarted{});
  bench.exited(0, 0);
  CHECK(bench.exited(1, 0).ends_with("end strays"));
  CHECK(bench.on(event::StraysGone{0}) == "remove stage");
  CHECK(bench.on(event::StageRemoved{}) == "close ranks");
}

TEST_CASE("a chain of nodes or items that the plan does not have is an error") {
  Bench bench;
  bench.prepare(with_stage(1));
  bench.says(to_agent::StageIn{"secret", kSources});
  bench.on(event::StageClaimed{protocol::from_agent::StageNeeds{{0}, 4711, {}}});
  CHECK(bench.says(to_agent::StageChain{{1}, NodeIndex(0), {}, 4710, std::nullopt})
            .starts_with("say error kind=6 what=message 'stage_chain' names what the plan"));
}
