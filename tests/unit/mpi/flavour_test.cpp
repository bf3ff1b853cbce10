// Real MPI programs under our services, without mpiexec, on one node and on pretend nodes. Built once a
// flavour: MPICH under PMI-1, Open MPI under PMIx.
#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>

#include "tests/unit/mpi/world.hpp"

namespace dlrun::test {

namespace {

WorldSpec program(std::vector<int> node_of_rank, std::vector<std::string> words) {
  WorldSpec spec{.mpi = plan::MpiProtocol::FLAVOUR_PROTOCOL,
                 .node_of_rank = std::move(node_of_rank),
                 .argv = {FLAVOUR_PROGRAM}};
  spec.environment = {
      {"OMPI_MCA_btl_tcp_if_include", "lo"}};  // between pretend nodes; other MPIs do not read it
  spec.argv.insert(spec.argv.end(), words.begin(), words.end());
  return spec;
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

// What this job left in shared memory.
std::vector<std::string> shared_files(const WorldEnd& end) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (entry.path().filename().string().find(end.job_id) != std::string::npos) names.push_back(entry.path());
  return names;
}

void check_orderly(const WorldEnd& end) {
  for (const RankEnd& rank : end.ranks) {
    CHECK(rank.code == 0);
    CHECK(rank.connected);
    CHECK(rank.finalized);
  }
  CHECK(end.log.empty());
  CHECK(shared_files(end).empty());
}

}  // namespace

TEST_CASE("two ranks on one node are one world") {
  const WorldEnd end = run_world(program({0, 0}, {"hello"}));
  CHECK(sorted_lines(end.output) ==
        std::vector<std::string>{"rank 0 of 2, sum 3, on this node 2", "rank 1 of 2, sum 3, on this node 2"});
  check_orderly(end);
  CHECK(end.exchanges == 0);
}

TEST_CASE("pretend nodes: ranks of a node share memory, the others' addresses come through the head") {
  const WorldEnd end = run_world(program({0, 0, 1}, {"hello"}));
  CHECK(sorted_lines(end.output) == std::vector<std::string>{"rank 0 of 3, sum 6, on this node 2",
                                                             "rank 1 of 3, sum 6, on this node 2",
                                                             "rank 2 of 3, sum 6, on this node 1"});
  check_orderly(end);
  CHECK(end.exchanges >= 2);
}

TEST_CASE("a failure on one node ends the other") {
  const WorldEnd end = run_world(program({0, 1}, {"exit", "3"}));
  CHECK(end.ranks[1].code == 3);
  CHECK(end.ranks[0].code != 0);
}

TEST_CASE("the training runtime's collectives, on one node and between nodes") {
  for (const std::vector<int>& nodes : {std::vector<int>{0, 0}, {0, 1}, {0, 0, 1}, {0, 1, 2, 3}}) {
    WorldSpec spec = program(nodes, {});
    spec.argv = {COMM_PROGRAM};
    const WorldEnd end = run_world(spec);
    INFO(end.output);
    CHECK(end.output.find(fmt::format("of {}: " FLAVOUR_NAME, nodes.size())) != std::string::npos);
    CHECK((end.output.find("through shared memory") != std::string::npos) ==
          (nodes == std::vector<int>{0, 0}));
    check_orderly(end);
  }
}

TEST_CASE("the allreduce algorithms that can be asked for give the same answers") {
  for (const std::string algorithm : {"ring", "halving", "recursive-halving-doubling", "direct", "mpi"}) {
    WorldSpec spec = program({0, 0, 0}, {});
    spec.argv = {COMM_PROGRAM};
    spec.environment["DLRUN_ALLREDUCE"] = algorithm;
    const WorldEnd end = run_world(spec);
    INFO(end.output);
    CHECK(end.output.find("through shared memory") == std::string::npos);
    CHECK(end.output.find("of 3: " FLAVOUR_NAME) != std::string::npos);
    check_orderly(end);
  }
}

TEST_CASE("a message of another length than its receiver expects ends the job, with the rank that sent it") {
  WorldSpec spec = program({0, 1}, {});
  spec.argv = {COMM_PROGRAM, "lengths"};
  const WorldEnd end = run_world(spec);
  INFO(end.output);
  CHECK((end.output.find("rank 0 sent 4 bytes; expected 8") != std::string::npos));
  CHECK(end.abort_code == 3);
}

TEST_CASE("ranks that do not find each other are an error, not as many worlds of one") {
  WorldSpec spec = program({0, 0}, {});
  spec.argv = {COMM_PROGRAM};
  spec.mpi = plan::MpiProtocol::none;
  spec.environment = {{"DLRUN_COMM", FLAVOUR_CHOICE}, {"OMPI_MCA_ess_singleton_isolated", "1"}};
  const WorldEnd end = run_world(spec);
  CHECK(end.output.find(FLAVOUR_NAME " started as a world of 1, but DLRUN_SIZE is 2") != std::string::npos);
  CHECK(end.output.find("hint: this " FLAVOUR_NAME " does not use the launcher's PMI") != std::string::npos);
  CHECK(end.output.find("DLRUN_COMM=" FLAVOUR_CHOICE) == std::string::npos);  // it has that already
}

TEST_CASE("MPI_Abort's code comes through and the job ends") {
  const WorldEnd end = run_world(program({0, 0}, {"abort", "7"}));
  CHECK(end.abort_code == 7);
  CHECK(end.abort_reason == "called MPI_Abort with code 7");
  CHECK(end.ranks[0].code != 0);
  CHECK(shared_files(end).empty());
}

TEST_CASE("a rank that leaves with 0 but without MPI_Finalize has not finalized") {
  const WorldEnd end = run_world(program({0, 0}, {"silent"}));
  CHECK(end.ranks[1].code == 0);
  CHECK(end.ranks[1].connected);
  CHECK(!end.ranks[1].finalized);
}

TEST_CASE("a program that never calls MPI never connects") {
  const WorldEnd end = run_world(program({0, 0}, {"never"}));
  CHECK(end.ranks[0].code == 0);
  CHECK(!end.ranks[0].connected);
}

}  // namespace dlrun::test
