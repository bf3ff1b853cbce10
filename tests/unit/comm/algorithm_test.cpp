// Which backend and which allreduce an environment and a job ask for.
#include <doctest/doctest.h>

#include "runtime/comm/allreduce/algorithms.hpp"
#include "runtime/comm/backend.hpp"
#include "runtime/comm/communicator.hpp"

namespace dlrun::runtime {

namespace {

Environment with(const std::vector<std::string>& entries) {
  return Environment::from_entries(entries);
}

}  // namespace

TEST_CASE("an empty environment is one rank") {
  CHECK(choose_backend(with({})) == Backend::one_rank);
}

TEST_CASE("PMIx means Open MPI, PMI-1 means MPICH or no MPI") {
  CHECK(choose_backend(with({"PMIX_NAMESPACE=job"})) == Backend::openmpi);
  CHECK(choose_backend(with({"PMI_FD=5"})) == Backend::mpich_or_own);
}

TEST_CASE("one rank needs neither an MPI nor a PMI") {
  CHECK(choose_backend(with({"PMIX_NAMESPACE=job", "DLRUN_SIZE=1"})) == Backend::one_rank);
  CHECK(choose_backend(with({"PMI_FD=5", "DLRUN_SIZE=1"})) == Backend::one_rank);
  CHECK(choose_backend(with({"DLRUN_COMM=mpich", "DLRUN_SIZE=1"})) == Backend::mpich);
}

TEST_CASE("DLRUN_COMM decides over what the launcher offers") {
  CHECK(choose_backend(with({"DLRUN_COMM=mpich", "PMIX_NAMESPACE=job"})) == Backend::mpich);
  CHECK(choose_backend(with({"DLRUN_COMM=openmpi", "PMI_FD=5"})) == Backend::openmpi);
  CHECK(choose_backend(with({"DLRUN_COMM=none", "PMI_FD=5"})) == Backend::one_rank);
  CHECK(choose_backend(with({"DLRUN_COMM=pmi", "PMI_FD=5"})) == Backend::own);
}

TEST_CASE("an unknown DLRUN_COMM is an error that names the valid ones") {
  const auto choice = choose_backend(with({"DLRUN_COMM=gloo"}));
  REQUIRE(!choice);
  CHECK(choice.error().text() == "DLRUN_COMM is 'gloo'\n  hint: valid values: none, openmpi, mpich, pmi");
}

TEST_CASE("a rank that should be one of two and finds nothing to connect it stops") {
  const auto world = make_communicator(with({"DLRUN_SIZE=2", "DLRUN_RANK=1"}));
  REQUIRE(!world);
  CHECK(world.error().kind == ErrorKind::unavailable);
  CHECK(world.error().text() ==
        "rank 1: DLRUN_SIZE is 2, but nothing connects the ranks: neither PMIx (PMIX_NAMESPACE) "
        "nor "
        "PMI-1 (PMI_FD) is available\n  hint: start the job with --mpi pmix or --mpi pmi1");
}

TEST_CASE("every row of the table is found by its name, and has what runs it or is run by somebody else") {
  std::vector<std::string> names{"auto"};
  for (const AllreduceAlgorithm& row : allreduce_algorithms()) {
    names.emplace_back(row.name);
    CHECK(find_allreduce(row.name) == &row);
    const bool elsewhere = row.name == "mpi" || row.name == "parameter-server";
    CHECK(((row.run != nullptr) + (row.make != nullptr)) == (elsewhere ? 0 : 1));
    if (row.suits != nullptr) CHECK((row.run != nullptr));  // auto chooses among hosts only
  }
  CHECK(allreduce_names() == names);
  CHECK(find_allreduce("halving") == find_allreduce("recursive-halving-doubling"));
  CHECK(find_allreduce("auto") == nullptr);
  CHECK(find_allreduce("") == nullptr);
}

TEST_CASE("auto: small arrays by halving and doubling, large ones by the ring, 16 bits where they pay") {
  const auto chosen = [](std::size_t bytes, CommDtype dtype) {
    return choose_by_size({bytes, 8, dtype}).name;
  };
  CHECK(chosen(1024, CommDtype::f32) == "recursive-halving-doubling");
  CHECK(chosen(8 << 20, CommDtype::f32) == "ring");
  CHECK(chosen(8 << 20, CommDtype::bf16) == "direct");
  CHECK(chosen(1024, CommDtype::bf16) == "recursive-halving-doubling");  // and so exact
}

TEST_CASE("DLRUN_ALLREDUCE, under old names too, decides over the job") {
  const AllreduceChoice of_job{.algorithm = find_allreduce("ring")};
  CHECK(choose_allreduce(with({}), of_job)->text() == "train.allreduce.algorithm is 'ring'");
  CHECK(choose_allreduce(with({"DLRUN_ALLREDUCE=halving"}), of_job)->text() ==
        "DLRUN_ALLREDUCE is 'recursive-halving-doubling'");
  CHECK(choose_allreduce(with({"DLRUN_ALLREDUCE=auto"}), of_job)->is_auto());
  CHECK(choose_host_allreduce(with({"DLRUN_ALLREDUCE=hierarchical"}), of_job)->is("hierarchical"));
  CHECK(choose_host_allreduce(with({}), {.algorithm = find_allreduce("parameter-server")})->is_auto());
}

TEST_CASE("an allreduce that only hosts have is told from those of GPUs") {
  for (const char* of_host : {"mpi", "ring", "halving", "direct"})
    CHECK(choose_allreduce(with({std::string("DLRUN_ALLREDUCE=") + of_host}))->is_of_host());
  for (const char* other : {"auto", "hierarchical"})
    CHECK_FALSE(choose_allreduce(with({std::string("DLRUN_ALLREDUCE=") + other}))->is_of_host());
}

TEST_CASE("the MPI's own allreduce without an MPI is refused before a rank waits for another") {
  const auto world = make_communicator(with({"DLRUN_COMM=pmi", "DLRUN_ALLREDUCE=mpi"}));
  REQUIRE(!world);
  CHECK(world.error().text() ==
        "DLRUN_ALLREDUCE is 'mpi', but no MPI connects the ranks\n  hint: set it to auto, ring, "
        "recursive-halving-doubling or direct");
}

TEST_CASE("an unknown DLRUN_ALLREDUCE is refused before any MPI is loaded") {
  for (const std::string value : {"star", "parameter-server"}) {
    const auto world = make_communicator(with({"DLRUN_COMM=mpich", "DLRUN_ALLREDUCE=" + value}));
    REQUIRE(!world);
    CHECK(world.error().kind == ErrorKind::usage);
    CHECK(world.error().text() ==
          "DLRUN_ALLREDUCE is '" + value +
              "'\n  hint: valid values: auto, direct, recursive-halving-doubling, ring, hierarchical, mpi");
  }
}

}  // namespace dlrun::runtime
