#include "src/agent/node_local_folder.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::agent;

namespace {

std::string chosen(const std::vector<std::string>& entries) {
  return node_local_folder(Environment::from_entries(entries));
}

}  // namespace

TEST_CASE("copies go where the user or the site says, else where temporary files go") {
  CHECK(chosen({"DLRUN_NODE_LOCAL=/nvme", "SLURM_TMPDIR=/local/7", "TMPDIR=/tmp/7"}) == "/nvme");
  CHECK(chosen({"SLURM_TMPDIR=/local/7", "TMPDIR=/tmp/7"}) == "/local/7");
  CHECK(chosen({"TMPDIR=/tmp/7"}) == "/tmp/7");
  CHECK(chosen({"DLRUN_NODE_LOCAL=nvme", "TMPDIR=here"}) == "/tmp");
}
