#include "src/agent/agent.hpp"

#include <doctest/doctest.h>

#include "src/base/version.hpp"
#include "tests/unit/agent/agent_fixture.hpp"

using namespace dlrun;
using namespace dlrun::agent;
using namespace dlrun::agent::test;
using protocol::OutputStream;
using protocol::Urgency;

namespace {

plan::NodeSlice with_prolog() {
  plan::NodeSlice slice = two_ranks();
  slice.plan.prolog.setup = {"ulimit -l unlimited"};
  return slice;
}
plan::NodeSlice with_mpi(plan::MpiProtocol mpi) {
  plan::NodeSlice slice = two_ranks();
  slice.plan.mpi = mpi;
  return slice;
}
tl::unexpected<Error> failure(ErrorKind kind, const std::string& what) {
  return fail(Error{.kind = kind, .what = what});
}
// The kinds that `say error` shows as numbers.
constexpr int kUnavailable = 3, kLost = 4, kIo = 5, kInternal = 6;

std::string error_text(int kind, const std::string& what, const std::string& where = {}) {
  return fmt::format("say error kind={} what={} where={} hint= also=[]", kind, what, where);
}

}  // namespace

// The start.

TEST_CASE("an agent says its version first, and then that it lives") {
  Bench bench;
  CHECK(bench.on(event::Begun{{}, 4711}) ==
        fmt::format("say ready pid=4711 version={} protocol={}; wake beat 1", dlrun::kVersion,
                    protocol::kVersion));
  bench.now = 1;
  CHECK(bench.on(event::Beat{}) == "say! alive; wake beat 2");
}

TEST_CASE("an agent that cannot prepare its process says why and ends in order") {
  Bench bench;
  CHECK(bench.on(event::Begun{failure(ErrorKind::internal, "signalfd: no"), 4711}) ==
        error_text(kInternal, "signalfd: no") + "; end strays");
  CHECK(bench.on(event::StraysGone{}) == "close ranks");
  CHECK(bench.on(event::RanksClosed{}) == "say clean strays=0; await writes");
  CHECK(bench.on(event::WritesDone{}) == "say done; await drained");
  CHECK(bench.says(to_agent::Bye{}) == "exit 69");
}

TEST_CASE("questions before the slice are answered") {
  Bench bench;
  bench.begin();
  CHECK(bench.says(to_agent::AskInventory{true}) == "take inventory with GPUs");
  CHECK(bench.on(event::InventoryTaken{{.cpus = 8}}) ==
        R"(say inventory inventory={"cpus":8,"gpus":null,"gpu_source":""})");
  CHECK(bench.says(to_agent::ClaimPorts{{2220, 2221}}) == "claim 2 ports");
  CHECK(bench.on(event::PortsClaimed{{{{2220, "sshd"}}}}) ==
        R"(say claimed taken=[{"port":2220,"by":"sshd"}])");
  CHECK(bench.on(event::PortsClaimed{failure(ErrorKind::unavailable, "no sockets")}) ==
        error_text(kUnavailable, "no sockets") + "; end strays");
}

TEST_CASE("a node is checked before it has a slice, and not after") {
  Bench bench;
  bench.begin();
  CHECK(bench.says(to_agent::AskClock{}) == "read clock");
  CHECK(bench.on(event::ClockRead{Seconds(1.5)}) == "say clock now=1.5");
  CHECK(bench.says(to_agent::CheckNode{false, "/work", {"n1", "n2"}, "ab"}) ==
        "check node and /work of 2 names");
  CHECK(bench.on(event::NodeChecked{{Json::object(), 4711, {"10.0.0.1"}}}) ==
        R"(say node_checked values={} port=4711 addresses=["10.0.0.1"])");
  CHECK(bench.says(to_agent::CheckPeers{"ab", Seconds(0), {{NodeIndex(1), {"n2"}, 4711}}}) ==
        "check 1 peers");
  CHECK(bench.on(event::PeersChecked{}) == "say peers_checked peers=[]");
  CHECK(bench.says(to_agent::CheckRing{"ab", 7, 0, 3, 64, Seconds(1), {NodeIndex(1), {"n2"}, 4711}}) ==
        "check ring 7 of 3");
  CHECK(bench.on(event::RingChecked{{7, "", 64, Seconds(1)}}) ==
        "say ring_checked number=7 problem= bytes=64 took=1.0");
  bench.slice(two_ranks());
  CHECK(bench.says(to_agent::CheckNode{}).find("message 'check_node' from the head is out of order") !=
        std::string::npos);
}

TEST_CASE("without a prolog ranks start as soon as their logs are open") {
  Bench bench;
  bench.begin();
  CHECK(bench.slice(two_ranks()) == "prepare node below /tmp");
  CHECK(bench.on(event::NodePrepared{}) ==
        "wake above 0; open /run/logs/0000-worker-0.log /run/logs/0001-worker-1.log");
  CHECK(bench.on(event::LogsOpened{}) == "start ranks");
  CHECK(bench.started(0) == "say started rank=0 pid=100 program=train processors=[]");
  CHECK(bench.started(1) == "say started rank=1 pid=101 program=train processors=[]");
  CHECK(bench.on(event::RanksStarted{}) == "watch GPUs; find provenance");
}

TEST_CASE("with a prolog ranks start when every node is ready, from the environment that it left") {
  Bench bench;
  bench.begin();
  bench.slice(with_prolog());
  CHECK(bench.on(event::NodePrepared{}) == "wake above 0; open /run/logs/prolog-0001-n1.log");
  bench.now = 2;
  CHECK(bench.on(event::LogsOpened{}) == "start prolog");
  CHECK(bench.on(event::PrologStarted{}).empty());
  CHECK(bench.on(event::PrologExited{}) == "read prolog");
  bench.now = 5;
  CHECK(bench.on(event::PrologRead{Environment::from_entries({"A=1", "PMI_RANK=0"})}) ==
        "say prolog seconds=3.0");
  CHECK(bench.says(to_agent::Go{}) == "open /run/logs/0000-worker-0.log /run/logs/0001-worker-1.log");
  CHECK(bench.on(event::LogsOpened{}) == "start ranks");
  CHECK(bench.environment == Environment::from_entries({"A=1"}));
}

TEST_CASE("a further attempt takes over what the prolog left, and runs none") {
  const ProcessLimits limits{.soft = {{RLIMIT_NOFILE, 77}}, .umask = 022};
  Bench first;
  first.begin();
  first.slice_that_keeps_prolog(with_prolog());
  first.on(event::NodePrepared{});
  first.on(event::LogsOpened{});
  first.on(event::PrologExited{});
  const Environment left = Environment::from_entries({"A=1"});
  CHECK(first.on(event::PrologRead{left, limits}) ==
        "say prolog_left limits={\"soft\":[[7,77]],\"umask\":18} (4 bytes); say prolog seconds=0.0");
  Bench second;
  second.begin();
  CHECK(second.says(to_agent::KeptProlog{{"A=1"}, limits_text(limits)}).empty());
  second.slice(with_prolog());
  CHECK(second.on(event::NodePrepared{}) ==
        "wake above 0; set limits {\"soft\":[[7,77]],\"umask\":18}; say prolog seconds=0.0");
  CHECK(second.says(to_agent::Go{}) == "open /run/logs/0000-worker-0.log /run/logs/0001-worker-1.log");
  CHECK(second.on(event::LogsOpened{}) == "start ranks");
  CHECK(second.environment == left);
}

TEST_CASE("a prolog that leaves processes is not kept: they end with its attempt") {
  Bench bench;
  bench.begin();
  bench.slice_that_keeps_prolog(with_prolog());
  bench.on(event::NodePrepared{});
  bench.on(event::LogsOpened{});
  bench.on(event::PrologExited{});
  CHECK(bench.on(event::PrologRead{Environment(), {}, event::LeftRunning::processes}) ==
        "say prolog seconds=0.0");
}

TEST_CASE("what the head keeps of a prolog is refused where it is none") {
  Bench bench;
  bench.begin();
  bench.says(to_agent::KeptProlog{{"A=1"}, "umask"});
  bench.slice(with_prolog());
  CHECK(bench.on(event::NodePrepared{}).find("say error ") != std::string::npos);
}

TEST_CASE("secrets that the prolog has read are told beside the event, not in it") {
  Bench bench;
  bench.prepare(with_prolog());
  bench.on(event::LogsOpened{});
  bench.on(event::PrologExited{});
  CHECK(bench.on(event::PrologRead{Environment::from_entries({"API_TOKEN=hunter2", "A=plain"})}) ==
        "say prolog seconds=0.0 (8 bytes)");
}

TEST_CASE("the job's environment is the head's, less what the rules deny and an outer launcher left") {
  Bench bench({"PATH=/bin", "TMPDIR=/scratch"});
  bench.begin();
  bench.says(to_agent::Environment{{"PATH=/opt/bin", "LICENSE=x", "OMPI_COMM_WORLD_SIZE=8"}});
  plan::NodeSlice slice = two_ranks();
  slice.plan.environment_rules.deny = {"LICENSE"};
  CHECK(bench.slice(slice) == "prepare node below /scratch");
  bench.on(event::NodePrepared{});
  bench.on(event::LogsOpened{});
  CHECK(bench.environment->get("PATH") == "/opt/bin");
  CHECK_FALSE(bench.environment->find("LICENSE").has_value());
  CHECK_FALSE(bench.environment->find("OMPI_COMM_WORLD_SIZE").has_value());
}

TEST_CASE("the rank that reads dlrun's input gets it only on its own node") {
  for (const int rank : {1, 3}) {
    Bench bench;
    bench.begin();
    bench.says(to_agent::Slice{to_text(plan::to_json(two_ranks())), false, Rank(rank)});
    bench.on(event::NodePrepared{});
    CHECK(bench.on(event::LogsOpened{}) == (rank == 1 ? "start ranks, input for 1" : "start ranks"));
  }
}

TEST_CASE("a node without ranks ends its strays at once, and stays until they are gone") {
  plan::NodeSlice slice = two_ranks();
  slice.plan.ranks.clear();
  slice.node_of_rank = {1, 1};
  Bench bench;
  bench.prepare(slice);
  CHECK(bench.on(event::LogsOpened{}) == "start ranks");
  CHECK(bench.on(event::RanksStarted{}) == "end strays; watch GPUs; find provenance");
}

// What fails at the start.

TEST_CASE("a slice of another version is an error, and nothing is prepared") {
  Bench bench;
  bench.begin();
  const std::string answer = bench.says(to_agent::Slice{"{}", false, std::nullopt});
  CHECK(answer.starts_with("say error kind=1 what=field 'schema' is missing where=slice"));
  CHECK(answer.ends_with("end strays"));
}

TEST_CASE("a node that cannot be prepared ends before anything was started") {
  Bench bench;
  bench.begin();
  bench.slice(two_ranks());
  CHECK(bench.on(event::NodePrepared{failure(ErrorKind::unavailable, "no PMIx here")}) ==
        error_text(kUnavailable, "no PMIx here") + "; end strays");
}

TEST_CASE("a log that cannot be opened ends the node before any rank was started") {
  Bench bench;
  bench.prepare();
  CHECK(bench.on(event::LogsOpened{failure(ErrorKind::io, "cannot create /run/logs/x")}) ==
        error_text(kIo, "cannot create /run/logs/x") + "; end strays");
  CHECK(bench.on(event::StraysGone{}) == "close ranks");
}

TEST_CASE("a prolog that fails ends the node, and no rank is started") {
  Bench bench;
  bench.prepare(with_prolog());
  bench.on(event::LogsOpened{});
  bench.on(event::PrologExited{});
  CHECK(bench.on(event::PrologRead{failure(ErrorKind::unavailable, "exit code 3")}) ==
        error_text(kUnavailable, "exit code 3") + "; end strays");
  CHECK(bench.says(to_agent::Go{}).empty());
}

TEST_CASE("a prolog that cannot be started is an error of the node") {
  Bench bench;
  bench.prepare(with_prolog());
  bench.on(event::LogsOpened{});
  CHECK(bench.on(event::PrologStarted{failure(ErrorKind::unavailable, "no bash")}) ==
        error_text(kUnavailable, "no bash") + "; end strays");
}

TEST_CASE("a prolog whose log cannot be written is ended first") {
  Bench bench;
  bench.prepare(with_prolog());
  bench.on(event::LogsOpened{});
  CHECK(bench.on(event::LogFailed{{}, {.kind = ErrorKind::io, .what = "disk full"}}) ==
        error_text(kIo, "disk full") +
            "; say signalled signal=15; SIGTERM prolog; SIGTERM ranks; wake supervisor 10");
  CHECK(bench.on(event::PrologExited{}) == "read prolog");
  CHECK(bench.on(event::PrologRead{Environment()}) == "end strays");
}

TEST_CASE("where the second rank cannot be started, the first is ended") {
  Bench bench;
  bench.prepare();
  bench.on(event::LogsOpened{});
  bench.started(0);
  CHECK(bench.on(event::RanksStarted{failure(ErrorKind::unavailable, "no such program")}) ==
        error_text(kUnavailable, "no such program") +
            "; say signalled signal=15; SIGTERM ranks; wake supervisor 10");
  bench.now = 1;
  CHECK(bench.exited(0, 0, SIGTERM) ==
        "say exited rank=0 code=0 signal=15 text=killed by SIGTERM (15); "
        "say failed rank=0 code=143 reason=killed by SIGTERM (15); end strays");
}

// Stops.

TEST_CASE("a stop before the slice ends the agent in order; a slice that comes later is ignored") {
  Bench bench;
  bench.begin();
  CHECK(bench.says(to_agent::Stop{}) == "end strays");
  CHECK(bench.slice(two_ranks()).empty());
  CHECK(bench.on(event::StraysGone{}) == "close ranks");
}

TEST_CASE("a stop while the prolog runs ends that, and no rank is started") {
  Bench bench;
  bench.prepare(with_prolog());
  bench.on(event::LogsOpened{});
  bench.now = 1;
  CHECK(bench.says(to_agent::Stop{}) ==
        "say signalled signal=15; SIGTERM prolog; SIGTERM ranks; wake supervisor 11");
  bench.now = 11;
  CHECK(bench.on(event::SupervisorTick{}) ==
        "say signalled signal=9; SIGKILL prolog; SIGKILL ranks; SIGKILL all below");
  CHECK(bench.on(event::PrologExited{}) == "read prolog");
  CHECK(bench.on(event::PrologRead{failure(ErrorKind::unavailable, "killed by SIGKILL")}) == "end strays");
}

TEST_CASE("a stop while logs are opened or other nodes are waited for leaves nothing to run") {
  Bench opening;
  opening.prepare();
  CHECK(opening.says(to_agent::Stop{}) ==
        "say signalled signal=15; SIGTERM ranks; wake supervisor 10; end strays");
  CHECK(opening.on(event::LogsOpened{}).empty());
  Bench ready;
  ready.prepare(with_prolog());
  ready.on(event::LogsOpened{});
  ready.on(event::PrologExited{});
  ready.on(event::PrologRead{Environment()});
  CHECK(ready.says(to_agent::Stop{}) ==
        "say signalled signal=15; SIGTERM ranks; wake supervisor 10; end strays");
  CHECK(ready.says(to_agent::Go{}).empty());
}

TEST_CASE("a stop is TERM, then KILL after the grace; one that is urgent is KILL") {
  Bench bench;
  bench.run();
  CHECK(bench.says(to_agent::Stop{}) == "say signalled signal=15; SIGTERM ranks; wake supervisor 10");
  bench.now = 10;
  CHECK(bench.on(event::SupervisorTick{}) == "say signalled signal=9; SIGKILL ranks; SIGKILL all below");
  Bench urgent;
  urgent.run();
  CHECK(urgent.says(to_agent::Stop{Urgency::now}) ==
        "say signalled signal=9; SIGKILL ranks; SIGKILL all below");
}

TEST_CASE("the grace is another where a rank of another node has failed") {
  plan::NodeSlice slice = two_ranks();
  slice.plan.limits.grace_after_failure = Seconds(2);
  Bench bench;
  bench.run(slice);
  CHECK(bench.says(to_agent::Stop{Urgency::polite, true}) ==
        "say signalled signal=15; SIGTERM ranks; wake supervisor 2");
}

// The ranks' ends.

TEST_CASE("ranks that end in order end the node: strays, output, files, and the agent disconnects") {
  Bench bench;
  bench.run();
  CHECK(bench.exited(0, 0) == "say exited rank=0 code=0 signal=0 text=exit code 0");
  CHECK(bench.exited(1, 0) == "say exited rank=1 code=0 signal=0 text=exit code 0; end strays");
  CHECK(bench.on(event::StraysGone{2}) == "close ranks");
  CHECK(bench.on(event::RankLines{Rank(1), OutputStream::out, "last\n"}) ==
        "say output rank=1 stream=out unfinished=false (5 bytes)");
  CHECK(bench.on(event::RanksClosed{}) == "say clean strays=2; await writes");
  CHECK(bench.on(event::WritesDone{}) == "say done; await drained");
  bench.now = 3;
  CHECK(bench.on(event::Drained{}) == "resume all; wake shutdown 8");
  CHECK(bench.on(event::ShutdownDue{}) == "exit 0");
}

TEST_CASE("an agent that has ended everything may serve another attempt, and one that has not may not") {
  Bench bench;
  bench.run();
  CHECK(bench.says(to_agent::BeginAnew{}).find("message 'begin_anew' from the head is out of order") !=
        std::string::npos);
  Bench ended;
  ended.run();
  ended.exited(0, 3);
  ended.exited(1, 0);
  ended.on(event::StraysGone{});
  ended.on(event::RanksClosed{});
  ended.on(event::WritesDone{});
  CHECK(ended.says(to_agent::BeginAnew{}) == "begin anew");
}

TEST_CASE("a rank's failure is told before the others are ended") {
  Bench bench;
  bench.run();
  bench.now = 1;
  CHECK(bench.exited(1, 3) ==
        "say exited rank=1 code=3 signal=0 text=exit code 3; say failed rank=1 code=3 reason=exit code 3; "
        "wake supervisor 1.3");
  bench.now = 1.5;
  CHECK(bench.on(event::SupervisorTick{}) ==
        "say signalled signal=15; tell ranks {\"ending\":\"rank 1: exit code 3\"}; SIGTERM ranks; "
        "wake supervisor 11.5");
  CHECK(bench.exited(0, 0, SIGTERM).ends_with("end strays"));
}

TEST_CASE("a rank is counted once, and one of another node not at all") {
  Bench bench;
  bench.run();
  bench.exited(0, 0);
  CHECK(bench.exited(0, 0).empty());
  CHECK(bench.exited(3, 1).empty());
}

TEST_CASE("SIGKILL is the kernel's for want of memory only where we did not send it") {
  const auto exit = [](Bench& bench) {
    return bench.on(event::RankExited{Rank(0), {.exit_code = 0, .signal = SIGKILL}, true});
  };
  Bench bench;
  bench.run();
  CHECK(exit(bench).find("the node ran out of memory") != std::string::npos);
  Bench killed;
  killed.run();
  killed.says(to_agent::Stop{Urgency::now});
  CHECK(exit(killed).find("the node ran out of memory") == std::string::npos);
}

TEST_CASE("MPI_Abort ends the others at once") {
  Bench bench;
  bench.run(with_mpi(plan::MpiProtocol::pmix));
  CHECK(
      bench.on(event::MpiAborted{Rank(1), 7, "called MPI_Abort with code 7"}) ==
      "say failed rank=1 code=7 reason=called MPI_Abort with code 7; say signalled signal=15; "
      "tell ranks {\"ending\":\"rank 1: called MPI_Abort with code 7\"}; SIGTERM ranks; wake supervisor 10");
}

TEST_CASE("a rank of an MPI job that never joined it has failed; one that left it in order has not") {
  Bench alone;
  alone.run(with_mpi(plan::MpiProtocol::pmix));
  CHECK(alone.exited(0, 0).find("say failed rank=0 code=69 reason=ended without joining") !=
        std::string::npos);
  Bench joined;
  joined.run(with_mpi(plan::MpiProtocol::pmix));
  joined.on(event::MpiConnected{Rank(0)});
  joined.on(event::MpiConnected{Rank(1)});
  joined.on(event::MpiFinalized{Rank(0)});
  CHECK(joined.exited(0, 0) == "say exited rank=0 code=0 signal=0 text=exit code 0");
  CHECK(joined.exited(1, 0).find("exited without MPI_Finalize") != std::string::npos);
}

TEST_CASE("a log that cannot be written any more fails its rank") {
  Bench bench;
  bench.run();
  CHECK(bench.on(event::LogFailed{Rank(1), {.kind = ErrorKind::io, .what = "disk full"}}) ==
        "say failed rank=1 code=74 reason=disk full; wake supervisor 0.3");
}

// The head.

TEST_CASE("a head that is silent for three times lost-after is missed, and told why its ranks are gone") {
  Bench bench;
  bench.run(two_ranks(), true);
  for (int beat = 1; beat <= 30; ++beat) {
    bench.now = beat;
    CHECK(bench.on(event::Beat{}) == fmt::format("say! alive; wake beat {}", beat + 1));
  }
  bench.now = 31;
  CHECK(
      bench.on(event::Beat{}) ==
      "say! alive; say head_silent seconds=30.0; say signalled signal=15; SIGTERM ranks; wake supervisor 41");
  CHECK(bench.on(event::Beat{}).empty());
  CHECK(bench.on(event::RankLines{Rank(0), OutputStream::out, "x\n"}).empty());
}

TEST_CASE("whatever the head says is a sign of life") {
  Bench bench;
  bench.run(two_ranks(), true);
  for (int beat = 1; beat <= 60; ++beat) {
    bench.now = beat;
    if (beat % 20 == 0) bench.says(to_agent::Alive{});
    CHECK(bench.on(event::Beat{}).starts_with("say! alive; wake"));
  }
}

TEST_CASE("nobody beats on one machine") {
  Bench bench;
  bench.run();
  bench.now = 100;
  CHECK(bench.on(event::Beat{}).empty());
}

TEST_CASE("a head whose machine acknowledges nothing is gone") {
  Bench bench;
  bench.run(two_ranks(), true);
  bench.now = 1;
  CHECK(bench.on(event::Beat{Seconds(9)}) == "say! alive; wake beat 2");
  CHECK(bench.on(event::Beat{Seconds(11)}).find("SIGTERM ranks") != std::string::npos);
}

TEST_CASE("the end of the stream while ranks run ends them, and then the agent by itself") {
  Bench bench;
  bench.run();
  CHECK(bench.on(event::HeadGone{}) == "say signalled signal=15; SIGTERM ranks; wake supervisor 10");
  bench.exited(0, 0);
  CHECK(bench.exited(1, 0).ends_with("end strays"));
  bench.on(event::StraysGone{});
  bench.on(event::RanksClosed{});
  CHECK(bench.on(event::WritesDone{}) == "say done; exit 0");
}

TEST_CASE("the end of the stream before the slice, or after the end, is the end") {
  Bench early;
  early.begin();
  CHECK(early.on(event::HeadGone{}) == "exit 0");
  Bench late;
  late.run();
  late.exited(0, 0);
  late.exited(1, 0);
  late.on(event::StraysGone{});
  late.on(event::RanksClosed{});
  late.on(event::WritesDone{});
  CHECK(late.on(event::HeadGone{}) == "exit 0");
}

TEST_CASE("a malformed message is told and ends the ranks") {
  Bench bench;
  bench.run();
  CHECK(bench.on(event::HeadMalformed{{.kind = ErrorKind::internal, .what = "unknown message 'dance'"}}) ==
        error_text(kInternal, "unknown message 'dance'", "from the head") +
            "; say signalled signal=15; SIGTERM ranks; wake supervisor 10");
}

TEST_CASE("a second slice is an error, not a second job") {
  Bench bench;
  bench.run();
  CHECK(bench.slice(two_ranks()) == error_text(kInternal, "message 'slice' from the head is out of order") +
                                        "; say signalled signal=15; SIGTERM ranks; wake supervisor 10");
}

TEST_CASE("a message out of order is an error that names it") {
  Bench early;
  early.begin();
  CHECK(early.says(to_agent::Go{}) ==
        error_text(kInternal, "message 'go' from the head is out of order") + "; end strays");
  Bench preparing;
  preparing.prepare(with_prolog());
  preparing.on(event::LogsOpened{});
  CHECK(preparing.says(to_agent::Go{}).find("message 'go' from the head is out of order") !=
        std::string::npos);
  Bench running;
  running.run();
  CHECK(running.says(to_agent::ClaimPorts{{1}}).find("message 'claim'") != std::string::npos);
}

TEST_CASE("what may come at any time is harmless before the slice") {
  Bench bench;
  bench.begin();
  CHECK(bench.says(to_agent::Alive{}).empty());
  CHECK(bench.says(to_agent::ProbeRanks{}) == "probe ranks; check GPUs");
  CHECK(bench.on(event::RanksProbed{}) == "say! probed ranks=[]");
  CHECK(bench.says(to_agent::ReadStacks{3}) == "say! stacks request=3 ranks=[]");
  CHECK(bench.says(to_agent::RequestCheckpoint{true, false, true, 0}).empty());
  CHECK(bench.says(to_agent::Bye{}) == "exit 0");
}

// Signals to the agent.

TEST_CASE("a scheduler's TERM is told to the head, which has some seconds to answer") {
  Bench bench;
  bench.run();
  bench.now = 1;
  CHECK(bench.on(event::Signalled{{SIGTERM, SignalSender::other_user}}) ==
        "say told_to_end signal=15 sender=2; wake head-answer 6");
  CHECK(bench.on(event::Signalled{{SIGTERM, SignalSender::other_user}}).empty());
  bench.now = 6;
  CHECK(bench.on(event::HeadAnswerDue{}) ==
        error_text(kLost, "the agent was told to end by SIGTERM (15)") +
            "; say signalled signal=15; SIGTERM ranks; wake supervisor 16");
}

TEST_CASE("a head that answers a signal with a stop has decided") {
  Bench bench;
  bench.run();
  bench.on(event::Signalled{{SIGTERM, SignalSender::other_user}});
  bench.says(to_agent::Stop{});
  CHECK(bench.on(event::HeadAnswerDue{}).empty());
  CHECK(bench.on(event::Signalled{{SIGINT, SignalSender::own_user}}).empty());
}

TEST_CASE("an agent whose ranks have left waits for no answer to a signal") {
  Bench bench;
  bench.run();
  bench.on(event::Signalled{{SIGTERM, SignalSender::own_user}});
  for (const int rank : {0, 1}) bench.exited(rank, 0);
  CHECK(bench.on(event::HeadAnswerDue{}).empty());
}

TEST_CASE("a warning signal is the head's to understand") {
  Bench bench;
  bench.run();
  CHECK(bench.on(event::Signalled{{SIGUSR1, SignalSender::other_user}}).empty());
  CHECK(bench.on(event::Signalled{{SIGUSR2, SignalSender::other_user}}).empty());
}

TEST_CASE("without its reaper an agent gives up") {
  Bench bench;
  bench.run();
  CHECK(bench.on(event::ReaperGone{}).starts_with(error_text(kLost, "its dlrun-reaper process was killed")));
}

TEST_CASE("an agent that gives up in an elastic run asks its ranks nothing, which would end the others") {
  Bench bench;
  plan::NodeSlice node = two_ranks();
  node.plan.elastic = plan::Elastic{};
  bench.run(node);
  CHECK(bench.on(event::ReaperGone{}).find("SIGKILL ranks") != std::string::npos);
}

// Suspension.

TEST_CASE("ranks that start while the job is suspended are stopped, too") {
  Bench bench;
  bench.prepare();
  CHECK(bench.on(event::AboveSeen{Suspension::Above::stopped}) ==
        "say suspended; SIGSTOP all below; wake above 1");
  bench.on(event::LogsOpened{});
  bench.started(0);
  bench.started(1);
  CHECK(bench.on(event::RanksStarted{}) == "watch GPUs; find provenance; SIGSTOP all below");
  bench.now = 1;
  CHECK(bench.on(event::AboveSeen{Suspension::Above::run}) ==
        "say continued; SIGCONT all below; wake above 2");
}

TEST_CASE("who is suspended hears a TERM: it is continued behind it") {
  Bench bench;
  bench.run();
  CHECK(bench.says(to_agent::Suspend{}) == "say suspended; SIGSTOP all below");
  CHECK(bench.says(to_agent::Stop{}) ==
        "say signalled signal=15; SIGTERM ranks; SIGCONT ranks; wake supervisor 10");
}

TEST_CASE("a head is not missed while the job is suspended") {
  Bench bench;
  bench.run(two_ranks(), true);
  for (int beat = 1; beat <= 100; ++beat) {
    bench.now = beat;
    bench.on(event::AboveSeen{Suspension::Above::stopped});
    CHECK(bench.on(event::Beat{}).starts_with("say! alive; wake"));
  }
}

// Output.

TEST_CASE("who floods waits; the others go on until the node has too much to say") {
  Bench bench;
  bench.run();
  constexpr std::size_t mib = std::size_t{1} << 20;
  CHECK(bench.on(event::OutputWaits{Rank(0), mib, mib}).empty());
  CHECK(bench.on(event::OutputWaits{Rank(0), 1, mib + 1}) == "pause 0");
  CHECK(bench.on(event::OutputWaits{Rank(1), 100, mib + 101}).empty());
  CHECK(bench.on(event::OutputWaits{Rank(1), 100, 8 * mib + 1}) == "pause all");
  CHECK(bench.on(event::Drained{}) == "resume all");
  CHECK(bench.on(event::OutputWaits{Rank(0), mib, mib}).empty());
}

TEST_CASE("the start of a line is cut to what is shown, and dropped while the head is slow to read") {
  Bench bench;
  bench.run();
  const std::string line(5000, 'x');
  CHECK(bench.on(event::UnfinishedLine{Rank(0), OutputStream::err, line, 0}) ==
        "say output rank=0 stream=err unfinished=true (4096 bytes)");
  CHECK(
      bench.on(event::UnfinishedLine{Rank(0), OutputStream::err, line, (std::size_t{1} << 20) + 1}).empty());
}

// Checkpoints, input, MPI.

TEST_CASE("a request goes by the control channel, and by a signal only where nobody listens there") {
  Bench bench;
  bench.run();
  const to_agent::RequestCheckpoint request{true, true, true, SIGUSR1};
  CHECK(bench.says(request) ==
        R"(write /run/checkpoint-request stop; tell ranks {"checkpoint":"now","stop":true})");
  CHECK(bench.on(event::RanksTold{2}).empty());
  bench.says(request);
  CHECK(bench.on(event::RanksTold{0}) == "SIGUSR1 ranks");
  CHECK(bench.says(to_agent::RequestCheckpoint{false, false, false, SIGTERM}) == "SIGTERM ranks");
}

TEST_CASE("a rank that dies of the signal which asks for a checkpoint has not failed") {
  Bench bench;
  bench.run();
  bench.says(to_agent::RequestCheckpoint{true, false, false, SIGTERM});
  CHECK(bench.exited(0, 0, SIGTERM) == "say exited rank=0 code=0 signal=15 text=killed by SIGTERM (15)");
}

TEST_CASE("input, allgathers and reports pass through, those that others wait for ahead") {
  Bench bench;
  bench.run();
  CHECK(bench.says(to_agent::Input{"yes\n"}) == "give 4 bytes");
  CHECK(bench.says(to_agent::InputEnd{}) == "end input");
  CHECK(bench.on(event::InputTaken{4}) == "say! input_taken bytes=4");
  CHECK(bench.on(event::InputClosed{}) == "say! input_closed");
  CHECK(bench.on(event::MpiAllgather{"barrier 1", "abc"}) == "say! allgather key=barrier 1 (3 bytes)");
  CHECK(bench.says(to_agent::Allgathered{"barrier 1", {"abc", ""}}) == "tell allgathered barrier 1");
  CHECK(bench.on(event::Reported{Rank(0), {{"step", 7}}}) == R"(say report rank=0 report={"step":7})");
  CHECK(bench.on(event::Noted{"a line"}) == "say log text=a line");
}

TEST_CASE("ranks that wait in a barrier at two looks in a row are told of") {
  Bench bench;
  bench.prepare(with_mpi(plan::MpiProtocol::pmi1));
  bench.on(event::LogsOpened{});
  bench.started(0);
  bench.started(1);
  CHECK(bench.on(event::RanksStarted{}) == "wake barriers 0; watch GPUs; find provenance");
  CHECK(bench.on(event::BarriersSeen{true}) == "wake barriers 7.5");
  CHECK(bench.on(event::BarriersSeen{false}) == "wake barriers 7.5");
  CHECK(bench.on(event::BarriersSeen{true}) == "wake barriers 7.5");
  CHECK(bench.on(event::BarriersSeen{true}) == "say mpi_waits; wake barriers 7.5");
}

TEST_CASE("an elastic rank that is killed ends no other rank: the head decides") {
  plan::NodeSlice slice = two_ranks();
  slice.plan.elastic = plan::Elastic{};
  Bench bench;
  bench.run(slice);
  CHECK(bench.exited(0, 0, SIGKILL) ==
        "say exited rank=0 code=0 signal=9 text=killed by SIGKILL (9); "
        "say failed rank=0 code=137 reason=killed by SIGKILL (9)");
  CHECK(bench.on(event::Reported{Rank(1),
                                 {{"rank", 1},
                                  {"left_world", 1},
                                  {"done", 17},
                                  {"port", "p"},
                                  {"at_step", true},
                                  {"job", "4711"}}}) ==
        "say left_world rank=1 generation=1 done=17 at_step=true job=4711 (1 bytes)");
  CHECK(bench.says(to_agent::Regroup{.generation = 1, .ranks = {Rank(1)}}) ==
        R"(tell ranks {"regroup":1,"ranks":[1],"at_step":false})");
  CHECK(bench.exited(1, 0).ends_with("end strays"));
  Bench own_error;
  own_error.run(slice);
  CHECK(own_error.exited(0, 65).find("wake supervisor") != std::string::npos);
}
