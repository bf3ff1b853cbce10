// What a PMIx client is told about its job: the keys of the namespace and of every rank. Only for the
// plug-in.
#pragma once

#include <string>
#include <vector>

#include "src/agent/pmi/pmix_keys.hpp"
#include "src/agent/pmi/pmix_table.h"

namespace dlrun::pmix {

// The job as the plug-in keeps it.
struct Job {
  std::string name_space;
  std::string scratch;
  std::vector<std::string> node_names;
  std::vector<std::vector<int>> ranks_of_node;
  std::vector<int> node_of_rank;
  int node = 0;

  explicit Job(const DlrunPmixJob& job);
  const std::vector<int>& local_ranks() const { return ranks_of_node[static_cast<std::size_t>(node)]; }
  std::size_t nodes() const { return node_names.size(); }
};

// Fills `keys` with the set that Slurm and Flux give too. A PMIx error where the library cannot encode the
// maps.
pmix_status_t fill_job_keys(const Job& job, PmixKeys& keys);

}  // namespace dlrun::pmix
