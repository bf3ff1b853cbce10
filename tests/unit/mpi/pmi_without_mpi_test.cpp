// The training runtime's collectives under our PMI-1 service with no MPI in the process: through shared
// memory on one node, by messages between nodes, and where an MPI is wanted but not there.
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <unistd.h>

#include "tests/unit/mpi/world.hpp"

namespace dlrun::test {

namespace {

WorldSpec world_of(const std::vector<int>& nodes, std::map<std::string, std::string> environment) {
  WorldSpec spec{.mpi = plan::MpiProtocol::pmi1, .node_of_rank = nodes, .argv = {COMM_PROGRAM}};
  spec.environment = std::move(environment);
  return spec;
}

void check_all_well(const WorldEnd& end) {
  INFO(end.output);
  INFO(end.log);
  for (const RankEnd& rank : end.ranks) {
    CHECK(rank.code == 0);
    CHECK(rank.connected);
    CHECK(rank.finalized);
  }
}

bool says(const WorldEnd& end, const std::string& text) {
  INFO(end.output);
  return end.output.find(text) != std::string::npos;
}

// A folder that the loader searches first, whose MPICH is no library, by none of its names: as if there were
// none on this machine.
class NoMpich {
 public:
  NoMpich() : folder_(std::filesystem::temp_directory_path() / fmt::format("dlrun-no-mpich-{}", ::getpid())) {
    std::filesystem::create_directories(folder_);
    for (const char* name : {"libmpich.so.12", "libmpi.so.12"}) std::ofstream(folder_ / name) << "";
  }
  ~NoMpich() { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
};

}  // namespace

TEST_CASE(
    "ranks of one node find each other through the launcher's PMI service and sum through shared memory") {
  for (const std::vector<int>& nodes : {std::vector<int>{0, 0}, std::vector<int>{0, 0, 0, 0}}) {
    const WorldEnd end = run_world(world_of(nodes, {{"DLRUN_COMM", "pmi"}}));
    check_all_well(end);
    CHECK(says(end, fmt::format("of {}: dlrun's own links, allreduce through shared memory", nodes.size())));
    CHECK_FALSE(says(end, "no MPI"));
  }
}

TEST_CASE("ranks of several nodes exchange messages over TCP, by every allreduce algorithm") {
  for (const char* sum : {"", "ring", "recursive-halving-doubling", "direct"}) {
    auto spec = world_of({0, 1, 1}, {{"DLRUN_COMM", "pmi"}, {"DLRUN_NODE_RANKS", "1"}});
    if (*sum != '\0') spec.environment["DLRUN_ALLREDUCE"] = sum;
    const WorldEnd end = run_world(spec);
    check_all_well(end);
    CHECK(says(end, "of 3: dlrun's own links over TCP"));
  }
}

TEST_CASE("where nodes have several ranks each, sums and servers go through their memory first") {
  for (const char* sum : {"auto", "hierarchical"}) {
    const WorldEnd end = run_world(world_of(
        {0, 0, 1, 1, 2, 2}, {{"DLRUN_COMM", "pmi"}, {"DLRUN_NODE_RANKS", "2"}, {"DLRUN_ALLREDUCE", sum}}));
    check_all_well(end);
    CHECK(says(end, "of 6: dlrun's own links over TCP"));
    CHECK(says(end, ", sums inside nodes first (3 nodes of 2 ranks)") ==
          (sum == std::string("hierarchical")));
  }
  const auto uneven = [](const char* sum) {
    return run_world(
        world_of({0, 0, 1}, {{"DLRUN_COMM", "pmi"}, {"DLRUN_NODE_RANKS", "2"}, {"DLRUN_ALLREDUCE", sum}}));
  };
  const WorldEnd plain = uneven("auto");
  check_all_well(plain);
  CHECK_FALSE(says(plain, "inside nodes first"));
  CHECK(says(uneven("hierarchical"), "needs the same number of ranks on every node"));
}

TEST_CASE("a message of another length than its receiver expects ends the job without an MPI too") {
  auto spec = world_of({0, 1}, {{"DLRUN_COMM", "pmi"}});
  spec.argv = {COMM_PROGRAM, "lengths"};
  const WorldEnd end = run_world(spec);
  CHECK(says(end, "sent 4 bytes; expected 8"));
  CHECK(end.abort_code == 3);
}

TEST_CASE("where no MPI can be loaded, the ranks connect without one and say so") {
  const NoMpich none;
  for (const std::vector<int>& nodes : {std::vector<int>{0, 0}, std::vector<int>{0, 1}}) {
    const WorldEnd end = run_world(world_of(nodes, {{"LD_LIBRARY_PATH", none.path()}}));
    check_all_well(end);
    CHECK(says(end, "no MPI (cannot load "));
    CHECK(says(end, "libmpich.so.12"));
  }
}

TEST_CASE("an MPI that the environment asks for by name is not replaced") {
  const NoMpich none;
  const WorldEnd end =
      run_world(world_of({0, 0}, {{"LD_LIBRARY_PATH", none.path()}, {"DLRUN_COMM", "mpich"}}));
  CHECK(says(end, "hint: load a module with this MPI, or start the job with --mpi pmi1, which needs no MPI"));
}

TEST_CASE("ranks of which some have an MPI end with an error that says what to do") {
  auto spec = world_of({0, 1}, {});
  spec.node_environment = {{{"DLRUN_COMM", "mpich"}}, {{"DLRUN_COMM", "pmi"}}};
  const WorldEnd end = run_world(spec);
  CHECK(says(end, "rank 0 has announced no port to rank 1"));
  CHECK(says(end, "hint: if only some nodes have an MPI, set DLRUN_COMM=pmi for all ranks"));
}

TEST_CASE("without a PMI service it is an error that says what to do") {
  WorldSpec spec{.mpi = plan::MpiProtocol::none, .node_of_rank = {0, 0}, .argv = {COMM_PROGRAM}};
  spec.environment = {{"DLRUN_COMM", "pmi"}};
  const WorldEnd end = run_world(spec);
  CHECK(end.output.find("PMI_FD is '', not a number: there is no PMI-1 service here") != std::string::npos);
  CHECK(end.output.find("hint: start the job with --mpi pmi1") != std::string::npos);
}

}  // namespace dlrun::test
