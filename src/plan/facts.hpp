// Facts: the vocabulary that adapters may name ("{{rank.index}}"), and the one place that computes it.
// Adapters have no expressions: a new need is a new fact here, with its line in man/dlrun-framework.5 (a test
// compares the two). A fact without a value is null, never a made-up one.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/gpus/gpu_vendor.hpp"
#include "src/base/install.hpp"
#include "src/base/json.hpp"
#include "src/plan/job_spec.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::plan {

enum class Scope { job, rank };  // job: the same for all ranks, so files and checks may use it

struct FactInfo {
  std::string_view name;
  Scope scope;
  std::string_view summary;
};

std::span<const FactInfo> all_facts();
const FactInfo* find_fact(std::string_view name);
// NAME of a fact called "role.NAME.something"; empty for others.
std::string role_of_fact(std::string_view fact);

using Facts = std::map<std::string, Json, std::less<>>;

// `plan` needs its identity, nodes and placed ranks; environment and argv are what facts are for.
// `tasks` is by node: how many processes the job has there, whoever starts them.
Facts facts_of_job(const Plan& plan, const JobSpec& spec, const Installation& installation,
                   const std::vector<int>& tasks);
// What a rank's facts need beyond its plan.
struct RankShare {
  int node_ranks = 1;        // ranks on its node
  int node_tasks = 1;        // processes on its node, whoever starts them
  std::optional<int> cores;  // its own, where the node's number is known
  int reserve_cpus = 0;      // of these, for threads that communicate
  int role_local = 0;        // its position among the ranks of its role on its node
  int role_ranks = 1;        // and how many these are
  int cross_index = 0;       // among the ranks of its role with the same role_local
  int cross_size = 1;
  std::optional<GpuVendor> gpu_vendor = {};  // of its node's GPUs, where it is known
  std::optional<int> tuned_threads = {};     // measured with its cores on such a node
};
// Sets the facts of one rank over those of its job; called for rank after rank on the same Facts.
void set_facts_of_rank(Facts& facts, const Plan& plan, const RankPlan& rank, const RankShare& share);

// The rendezvous port: a function of job id and attempt, so that a retry uses another one without asking the
// network. It is below the ephemeral ports of kernels.
int rendezvous_port(std::string_view job_id, int attempt);

// What the builtin trainer reads: name, train and checkpoint, each value with its place in the job file.
Json train_config(const JobSpec& spec);

// A fact as text: lists are joined by commas. Null has none.
std::string fact_text(const Json& value);

}  // namespace dlrun::plan
