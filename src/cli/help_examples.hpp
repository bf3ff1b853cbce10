// What stands below the flags in each command's --help: commands to copy.
#pragma once

namespace dlrun::cli {

inline constexpr const char* kRunExamples = R"(Examples:
  dlrun train.yaml                                  run the job in the allocation it stands in, or on this machine
  dlrun --nodes 2 --gpus-per-node 8 train.yaml      the same with other resources than the file says
  dlrun --set train.epochs=1 train.yaml             change any key of the job file
  dlrun train.yaml -- --batch-size 32               add arguments to the job's command
  dlrun --framework mpi --tasks-per-node 4 -- ./a.out    four MPI ranks, without a job file)";

inline constexpr const char* kPlanExamples = R"(Examples:
  dlrun plan train.yaml                             what would run where
  dlrun plan --json train.yaml                      the plan itself
  dlrun plan --explain train.yaml                   every setting and where it came from
  dlrun plan --allocation alloc.json train.yaml     for a cluster that is not there
  dlrun plan --scripts scripts train.yaml           write the node scripts)";

inline constexpr const char* kHostsExamples = R"(Commands:
  dlrun hosts expand LIST...      the names of a list, one a line
  dlrun hosts compress HOST...    a short list of the names
  dlrun hosts count LIST...       how many they are
LIST is in the host-list language of Slurm; "-" reads lists from standard input, one a line.
Examples:
  dlrun hosts expand 'n[008-011],rack[0-1]node[2-3]-ib'    one name a line, in Slurm's order
  dlrun hosts expand --separator , "$SLURM_JOB_NODELIST"   in one line
  sort -u machines | dlrun hosts compress -                a short list of the same names, in the same order
  dlrun hosts count 'n[1-4096]'                            how many names a list has)";

inline constexpr const char* kSubmitExamples = R"(Examples:
  dlrun submit train.yaml                           hand the job to the scheduler; its id is printed
  dlrun submit --dry-run train.yaml                 show the script and the command, and submit nothing
  dlrun submit --nodes 4 --set resources.walltime=8h train.yaml    with other resources than the file says
  dlrun submit --chain 8 train.yaml                 go on in up to eight jobs, until the training is done
  dlrun submit --chain auto --epochs 90 --dry-run train.yaml    how many jobs it will take, and until when
  dlrun submit --scheduler pbs --dry-run train.yaml    for a scheduler that is not here)";

inline constexpr const char* kChainExamples = R"(Examples:
  dlrun submit --chain 8 train.yaml      one training over up to eight jobs
  dlrun chain status                     where the newest chain below runs/ stands
  dlrun chain stop DIR                   end it with a checkpoint; --now does not wait for one)";

inline constexpr const char* kAllocationExamples = R"(Examples:
  dlrun allocation                            the nodes, processors and GPUs of this job or machine, and their source
  dlrun allocation --json > alloc.json        the same as data: dlrun plan --allocation alloc.json plans for it anywhere
  dlrun allocation --hostfile hosts.txt       what a host file means)";

inline constexpr const char* kFrameworksExamples = R"(Examples:
  dlrun frameworks                            all adapters, a line each
  dlrun frameworks pytorch                    what one sets, and the file that it comes from
  dlrun frameworks check my-framework.yaml    look for mistakes in an adapter of your own)";

}  // namespace dlrun::cli
