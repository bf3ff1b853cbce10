// run_world(): a small job without the rest of dlrun: one forked process a pretend node, each with an
// MpiService and its ranks as children, and this process as the head that joins their exchanges. Any rank
// that fails or aborts ends the job, as the agents do it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/types.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::test {

struct WorldSpec {
  plan::MpiProtocol mpi = plan::MpiProtocol::pmi1;
  std::vector<int> node_of_rank;  // {0, 0, 1}: ranks 0 and 1 on the first node
  Argv argv;
  std::map<std::string, std::string> environment = {};  // over this process's own
  std::string job_id = {};                              // empty: a fresh one
  // What differs by node: a name for the program's shared-memory files.
  std::vector<std::map<std::string, std::string>> node_environment = {};
};

struct RankEnd {
  int code = -1;
  bool connected = false;
  bool finalized = false;
};

struct WorldEnd {
  std::string job_id;
  std::vector<RankEnd> ranks;
  int exchanges = 0;  // that the head joined
  int abort_code = -1;
  std::string abort_reason;
  std::string output;  // of all ranks, in no order
  std::string log;     // what the services had to say
  double seconds = 0;
};

WorldEnd run_world(const WorldSpec& spec);

}  // namespace dlrun::test
