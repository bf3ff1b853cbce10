#include "src/cli/other_flags.hpp"

#include "src/base/strings.hpp"

namespace dlrun::cli {
namespace {

constexpr OtherName kOtherFlags[] = {
    {"-n", "dlrun counts ranks per node: --nodes N and --tasks-per-node N"},
    {"--ntasks", "dlrun counts ranks per node: --nodes N and --tasks-per-node N"},
    {"-np", "dlrun counts ranks per node: --nodes N and --tasks-per-node N"},
    {"--np", "dlrun counts ranks per node: --nodes N and --tasks-per-node N"},
    {"-N", "did you mean --nodes?"},
    {"--nnodes", "did you mean --nodes?"},
    {"--num-nodes", "did you mean --nodes?"},
    {"--ntasks-per-node", "did you mean --tasks-per-node?"},
    {"--nproc-per-node", "did you mean --tasks-per-node?"},
    {"--nproc_per_node", "did you mean --tasks-per-node?"},
    {"--npernode", "did you mean --tasks-per-node?"},
    {"-npernode", "did you mean --tasks-per-node?"},
    {"--ppn", "did you mean --tasks-per-node?"},
    {"-ppn", "did you mean --tasks-per-node?"},
    {"--ranks-per-node", "did you mean --tasks-per-node?"},
    {"-c", "did you mean --cpus-per-task?"},
    {"--cpus-per-rank", "did you mean --cpus-per-task?"},
    {"--cpus", "did you mean --cpus-per-task?"},
    {"--gres", "did you mean --gpus-per-node?"},
    {"--gpus", "did you mean --gpus-per-node?"},
    {"-G", "did you mean --gpus-per-node?"},
    {"--gpus-per-task", "did you mean --gpus-per-node?"},
    {"--ngpus", "did you mean --gpus-per-node?"},
    {"--tensor-model-parallel-size", "did you mean --tensor-parallel?"},
    {"--tensor-parallel-size", "did you mean --tensor-parallel?"},
    {"--tp", "did you mean --tensor-parallel?"},
    {"--pipeline-model-parallel-size", "did you mean --pipeline-parallel?"},
    {"--pipeline-parallel-size", "did you mean --pipeline-parallel?"},
    {"--pp", "did you mean --pipeline-parallel?"},
    {"-t", "did you mean --walltime?"},
    {"--time", "did you mean --walltime?"},
    {"-p", "dlrun submit --set resources.queue=NAME"},
    {"--partition", "dlrun submit --set resources.queue=NAME"},
    {"--queue", "dlrun submit --set resources.queue=NAME"},
    {"--mem", "dlrun submit --set resources.memory=SIZE"},
    {"-C", "dlrun submit --set resources.constraint=NAME"},
    {"--constraint", "dlrun submit --set resources.constraint=NAME"},
    {"-A", "dlrun submit --set resources.account=NAME"},
    {"--account", "dlrun submit --set resources.account=NAME"},
    {"--project", "dlrun submit --set resources.account=NAME"},
    {"-J", "did you mean --name?"},
    {"--job-name", "did you mean --name?"},
    {"-w", "did you mean --hosts?"},
    {"--nodelist", "did you mean --hosts?"},
    {"-H", "did you mean --hosts?"},
    {"--host", "did you mean --hosts?"},
    {"-host", "did you mean --hosts?"},
    {"--machinefile", "did you mean --hostfile?"},
    {"-machinefile", "did you mean --hostfile?"},
    {"-hostfile", "did you mean --hostfile?"},
    {"--hostlist", "did you mean --hostfile?"},
    {"-x", "--set environment.set.NAME=VALUE"},
    {"-env", "--set environment.set.NAME=VALUE"},
    {"-genv", "--set environment.set.NAME=VALUE"},
    {"--export", "--set environment.set.NAME=VALUE"},
    {"--env", "--set environment.set.NAME=VALUE"},
    {"-o", "each rank has a log in the run directory, which --run-dir names"},
    {"-e", "each rank has a log in the run directory, which --run-dir names"},
    {"--output", "each rank has a log in the run directory, which --run-dir names"},
    {"--error", "each rank has a log in the run directory, which --run-dir names"},
    {"-f", "give the job file without a flag: dlrun JOB.yaml"},
    {"--file", "give the job file without a flag: dlrun JOB.yaml"},
    {"--config", "give the job file without a flag: dlrun JOB.yaml"},
    {"--bind-to", "ranks are bound to cores unless --no-bind is given"},
    {"--cpu-bind", "ranks are bound to cores unless --no-bind is given"},
    {"--max-restarts", "did you mean --retries?"},
    {"--max_restarts", "did you mean --retries?"},
};

// "-n4": a short flag with its number.
bool is_with_number(std::string_view word, std::string_view flag) {
  return flag.size() == 2 && word.size() > 2 && word.starts_with(flag) && is_digit(word[2]);
}

}  // namespace

std::string_view hint_for_other_flag(std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  for (const OtherName& flag : kOtherFlags)
    if (name == flag.theirs || is_with_number(name, flag.theirs)) return flag.ours;
  return {};
}

}  // namespace dlrun::cli
