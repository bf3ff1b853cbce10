// Which backend an environment asks for.
#include "runtime/comm/allreduce/algorithm.hpp"

#include <doctest/doctest.h>

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
        "rank 1: DLRUN_SIZE promises 2 ranks, but nothing here connects them: neither PMIx (PMIX_NAMESPACE) "
        "nor "
        "PMI-1 (PMI_FD) is offered\n  hint: start the job with --mpi pmix or --mpi pmi1");
}

TEST_CASE("a sum that only the host has is told from those of GPUs") {
  for (const char* of_host : {"mpi", "ring", "halving"})
    CHECK(is_of_host(choose_allreduce(with({std::string("DLRUN_ALLREDUCE=") + of_host})).value()));
  for (const char* other : {"auto", "hierarchical"})
    CHECK_FALSE(is_of_host(choose_allreduce(with({std::string("DLRUN_ALLREDUCE=") + other})).value()));
}

TEST_CASE("the MPI's own sum without an MPI is refused before a rank waits for another") {
  const auto world = make_communicator(with({"DLRUN_COMM=pmi", "DLRUN_ALLREDUCE=mpi"}));
  REQUIRE(!world);
  CHECK(
      world.error().text() ==
      "DLRUN_ALLREDUCE is 'mpi', but no MPI connects the ranks\n  hint: leave DLRUN_ALLREDUCE out, or set it "
      "to ring or halving");
}

TEST_CASE("an unknown DLRUN_ALLREDUCE is refused before any MPI is loaded") {
  const auto world = make_communicator(with({"DLRUN_COMM=mpich", "DLRUN_ALLREDUCE=star"}));
  REQUIRE(!world);
  CHECK(world.error().kind == ErrorKind::usage);
  CHECK(world.error().text() ==
        "DLRUN_ALLREDUCE is 'star'\n  hint: valid values: auto, mpi, ring, halving, hierarchical");
}

}  // namespace dlrun::runtime
