#include "src/agent/pmi/native_service.hpp"

#include <algorithm>

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::agent;

namespace {

std::string problem(const std::vector<std::string>& entries, MpiFlavour flavour, int size = 8) {
  const auto checked = check_engine(Environment::from_entries(entries), flavour, Rank(3), size);
  return checked ? "" : checked.error().what;
}

}  // namespace

TEST_CASE("a rank gets what its launcher gave the agent, and nothing else") {
  const auto own =
      Environment::from_entries({"PMIX_RANK=3", "PMI_FD=9", "OMPI_COMM_WORLD_SIZE=8", "PATH=/bin",
                                 "SLURM_PROCID=3", "SLURM_JOB_ID=7", "MPI_LOCALRANKID=1"});
  std::vector<std::string> names;
  for (const auto& [name, value] : engine_variables(own)) names.push_back(name);
  CHECK(names.size() == 5);
  CHECK(std::find(names.begin(), names.end(), "PATH") == names.end());
  CHECK(std::find(names.begin(), names.end(), "SLURM_JOB_ID") == names.end());
}

TEST_CASE("a rank that would come up alone is not started") {
  CHECK(problem({"PMIX_NAMESPACE=x"}, MpiFlavour::openmpi).empty());
  CHECK(problem({"PMI_FD=9", "PMI_SIZE=8"}, MpiFlavour::mpich).empty());
  CHECK(problem({"PMI_FD=9"}, MpiFlavour::unknown).empty());  // a script: nobody can tell
  CHECK(problem({}, MpiFlavour::openmpi, 1).empty());         // alone it is to be
  CHECK(problem({}, MpiFlavour::unknown) ==
        "rank 3 would come up as 1 of 1, not as one of 8: the launcher gave it no PMI");
  CHECK(
      problem({"PMIX_NAMESPACE=x"}, MpiFlavour::mpich) ==
      "rank 3 would come up as 1 of 1, not as one of 8: it links an MPICH, and the launcher speaks PMIx but "
      "not PMI");
  CHECK(problem({"PMI_FD=9"}, MpiFlavour::openmpi) ==
        "rank 3 would come up as 1 of 1, not as one of 8: it links Open MPI, and the launcher speaks PMI but "
        "not PMIx");
  CHECK(problem({"PMI_FD=9", "PMI_SIZE=4"}, MpiFlavour::mpich) ==
        "rank 3 would come up as 1 of 1, not as one of 8: the launcher says PMI_SIZE=4");
}
