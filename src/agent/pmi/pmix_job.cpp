#include "src/agent/pmi/pmix_job.hpp"

#include <cstdlib>

#include <pmix.h>

namespace dlrun::pmix {

namespace {

std::string joined(const std::vector<int>& numbers) {
  std::string out;
  for (const int number : numbers) out += (out.empty() ? "" : ",") + std::to_string(number);
  return out;
}

std::string node_list(const Job& job) {
  std::string out;
  for (const std::string& name : job.node_names) out += (out.empty() ? "" : ",") + name;
  return out;
}

// "0,1;2,3": the ranks of each node.
std::string rank_lists(const Job& job) {
  std::string out;
  for (std::size_t node = 0; node < job.nodes(); ++node)
    out += (node == 0 ? "" : ";") + joined(job.ranks_of_node[node]);
  return out;
}

// The two maps alone would do for Open MPI 4; the rest is derived from them.
pmix_status_t fill_maps(const Job& job, PmixKeys& keys) {
  char* text = nullptr;
  if (const pmix_status_t status = PMIx_generate_regex(node_list(job).c_str(), &text); status != PMIX_SUCCESS)
    return status;
  keys.regex(PMIX_NODE_MAP, text);
  std::free(text);
  text = nullptr;
  if (const pmix_status_t status = PMIx_generate_ppn(rank_lists(job).c_str(), &text); status != PMIX_SUCCESS)
    return status;
  keys.regex(PMIX_PROC_MAP, text);
  std::free(text);
  return PMIX_SUCCESS;
}

void fill_sizes(const Job& job, PmixKeys& keys) {
  const auto size = static_cast<std::uint32_t>(job.node_of_rank.size());
  const auto local_size = static_cast<std::uint32_t>(job.local_ranks().size());
  for (const char* key : {PMIX_JOB_SIZE, PMIX_UNIV_SIZE, PMIX_MAX_PROCS}) keys.number(key, size);
  for (const char* key : {PMIX_LOCAL_SIZE, PMIX_NODE_SIZE}) keys.number(key, local_size);
  keys.number(PMIX_JOB_NUM_APPS, 1);
  keys.number(PMIX_NUM_NODES, static_cast<std::uint32_t>(job.nodes()));
  keys.number(PMIX_NODEID, static_cast<std::uint32_t>(job.node));
}

void fill_rank(const Job& job, std::size_t node, std::size_t local_rank, PmixKeys& keys) {
  const auto rank = static_cast<pmix_rank_t>(job.ranks_of_node[node][local_rank]);
  PmixKeys inner;
  inner.rank(PMIX_RANK, rank);
  inner.number(PMIX_APPNUM, 0);
  inner.rank(PMIX_GLOBAL_RANK, rank);
  inner.rank(PMIX_APP_RANK, rank);
  inner.small_number(PMIX_LOCAL_RANK, static_cast<std::uint16_t>(local_rank));
  inner.small_number(PMIX_NODE_RANK, static_cast<std::uint16_t>(local_rank));
  inner.number(PMIX_NODEID, static_cast<std::uint32_t>(node));
  inner.text(PMIX_HOSTNAME, job.node_names[node]);
  keys.array(PMIX_PROC_INFO_ARRAY, inner);
}

}  // namespace

Job::Job(const DlrunPmixJob& job)
    : name_space(job.name_space),
      scratch(job.scratch),
      node_names(job.node_names, job.node_names + job.node_count),
      ranks_of_node(static_cast<std::size_t>(job.node_count)),
      node_of_rank(job.node_of_rank, job.node_of_rank + job.world_size),
      node(job.node_index) {
  for (int rank = 0; rank < job.world_size; ++rank)
    ranks_of_node[static_cast<std::size_t>(node_of_rank[static_cast<std::size_t>(rank)])].push_back(rank);
}

pmix_status_t fill_job_keys(const Job& job, PmixKeys& keys) {
  if (const pmix_status_t status = fill_maps(job, keys); status != PMIX_SUCCESS) return status;
  fill_sizes(job, keys);
  keys.text(PMIX_JOBID, job.name_space);
  keys.text(PMIX_LOCAL_PEERS, joined(job.local_ranks()));
  keys.rank(PMIX_LOCALLDR, static_cast<pmix_rank_t>(job.local_ranks().front()));
  keys.text(PMIX_TMPDIR, job.scratch);
  keys.text(PMIX_NSDIR, job.scratch + "/" + job.name_space);
  keys.yes_no(PMIX_TDIR_RMCLEAN, true);
  keys.yes_no(PMIX_SPAWNED, false);
  for (std::size_t node = 0; node < job.nodes(); ++node)
    for (std::size_t local = 0; local < job.ranks_of_node[node].size(); ++local)
      fill_rank(job, node, local, keys);
  return PMIX_SUCCESS;
}

}  // namespace dlrun::pmix
