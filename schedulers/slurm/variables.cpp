#include "schedulers/slurm/variables.hpp"

#include <algorithm>

namespace dlrun {
namespace {

// Options that srun would take from the environment. Two of the memory ones together are an error to it, and
// a --cpus-per-task that differs from SLURM_TRES_PER_TASK as well.
constexpr std::string_view kTaskOptions[] = {
    "SLURM_NTASKS",           "SLURM_NPROCS",         "SLURM_NTASKS_PER_NODE",
    "SLURM_NTASKS_PER_CORE",  "SLURM_NTASKS_PER_GPU", "SLURM_CPUS_PER_TASK",
    "SRUN_CPUS_PER_TASK",     "SLURM_TRES_PER_TASK",  "SLURM_CPUS_PER_GPU",
    "SLURM_GPUS_PER_TASK",    "SLURM_GPU_BIND",       "SLURM_CPU_BIND",
    "SLURM_MEM_BIND",         "SLURM_DISTRIBUTION",   "SLURM_HINT",
    "SLURM_THREADS_PER_CORE", "SLURM_EXACT",          "SLURM_EXCLUSIVE",
    "SLURM_MPI_TYPE",         "SLURM_KILL_BAD_EXIT",  "SLURM_WAIT",
    "SLURM_NO_KILL",          "SLURM_EXPORT_ENV",     "SLURM_STDINMODE",
    "SLURM_STDOUTMODE",       "SLURM_STDERRMODE"};

VariableMap variables_of_step(const StepShape& step) {
  VariableMap out;
  const std::string size = std::to_string(step.ranks), nodes = std::to_string(step.ranks_of_node.size());
  for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS"}) out[name] = size;
  for (const char* name : {"SLURM_NNODES", "SLURM_STEP_NUM_NODES"}) out[name] = nodes;
  // Lightning wants it; nodes that differ have no one number.
  const std::vector<int>& ranks = step.ranks_of_node;
  if (std::all_of(ranks.begin(), ranks.end(), [&](int count) { return count == ranks.front(); }))
    out["SLURM_NTASKS_PER_NODE"] = std::to_string(ranks.front());
  return out;
}

VariableMap variables_of_rank(const RankPlace& place) {
  return {{"SLURM_PROCID", std::to_string(place.rank)},
          {"SLURM_LOCALID", std::to_string(place.local_rank)},
          {"SLURM_NODEID", std::to_string(place.node)}};
}

}  // namespace

Environment without_task_options(Environment environment) {
  for (const std::string_view name : kTaskOptions) environment.unset(name);
  if (environment.find("SLURM_MEM_PER_NODE")) {
    environment.unset("SLURM_MEM_PER_CPU");
    environment.unset("SLURM_MEM_PER_GPU");
  }
  return environment;
}

VariableRules slurm_variables() {
  return {.prefixes = {"SLURM_"},
          .drop_for_submit = {"SLURM_", "SLURMD_", "SBATCH_", "SRUN_"},
          .keep_for_submit = {"SLURM_CONF"},
          .node_local = {"SLURMD_NODENAME", "SLURM_NODEID", "SLURM_CPUS_ON_NODE", "SLURM_GPUS_ON_NODE",
                         "SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURM_TOPOLOGY_ADDR",
                         "SLURM_TOPOLOGY_ADDR_PATTERN", "SLURM_TASK_PID", "SLURM_MEM_PER_NODE"},
          .per_node = {"SLURMD_NODENAME", "SLURM_GTIDS", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_PROCID",
                       "SLURM_STEP_GPUS", "SLURM_TMPDIR"},
          .agent_step = {"SLURM_MPI_TYPE", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS", "SLURM_STEP_ID",
                         "SLURM_STEPID", "SLURM_STEP_NODELIST", "SLURM_STEP_NUM_NODES",
                         "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_LAUNCHER_PORT"},
          .rank_step = {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_GTIDS", "SLURM_STEP_ID",
                        "SLURM_STEPID", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_MPI_TYPE",
                        "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_NODELIST"},
          .node_name = "SLURMD_NODENAME",
          .task = "SLURM_PROCID",
          .step_size = "SLURM_STEP_NUM_TASKS",
          .of_step = variables_of_step,
          .of_rank = variables_of_rank,
          .restart_count = "SLURM_RESTART_COUNT"};
}

}  // namespace dlrun
