#include "src/cli/job_options.hpp"

#include <algorithm>

namespace dlrun::cli {
namespace {

constexpr FlagRow<JobOptions> kJobFlags[] = {
    {{.name = "--framework",
      .value = "FRAMEWORK",
      .help = "adapter to use; with -- COMMAND no job file is needed",
      .on_submit = OnSubmit::frozen},
     Key{"framework"}},
    {{.name = "--name",
      .value = "NAME",
      .help = "name of the job and of its run directory",
      .on_submit = OnSubmit::directive},
     Key{"name"}},
    {{.name = "--nodes",
      .value = "N",
      .help = "number of nodes, or a range such as 2-8: as many as the allocation has",
      .on_submit = OnSubmit::directive},
     Key{"resources.nodes"}},
    {{.name = "--gpus-per-node", .value = "N", .help = "GPUs per node", .on_submit = OnSubmit::directive},
     Key{"resources.gpus-per-node"}},
    {{.name = "--tasks-per-node", .value = "N", .help = "ranks per node", .on_submit = OnSubmit::directive},
     Key{"resources.tasks-per-node"}},
    {{.name = "--cpus-per-task", .value = "N", .help = "cores per rank", .on_submit = OnSubmit::directive},
     Key{"resources.cpus-per-task"}},
    {{.name = "--tensor-parallel",
      .value = "SIZE",
      .help = "ranks in each tensor-parallel group",
      .on_submit = OnSubmit::frozen},
     Key{"parallel.tensor"}},
    {{.name = "--pipeline-parallel",
      .value = "SIZE",
      .help = "stages of the pipeline; the remaining ranks are used for data parallelism",
      .on_submit = OnSubmit::frozen},
     Key{"parallel.pipeline"}},
    {{.name = "--walltime",
      .value = "TIME",
      .help = "time limit: submit requests it; run uses it if no scheduler reports the end",
      .on_submit = OnSubmit::directive},
     Key{"resources.walltime"}},
    {{.name = "--mpi",
      .value = "HOW",
      .help = "how MPI ranks find each other: auto, pmix, pmi1, native, none",
      .on_submit = OnSubmit::frozen,
      .choices = "auto pmix pmi1 native none"},
     Key{"launch.mpi"}},
    {{.name = "--via",
      .value = "LAUNCHER",
      .help = "how agents are started on the nodes: auto, local, slurm, ssh, ...",
      .on_submit = OnSubmit::frozen},
     Key{"launch.via"}},
    {{.name = "--stage",
      .help = "copy dlrun to nodes that do not have it at the same path",
      .on_submit = OnSubmit::frozen},
     Key{"launch.stage", "true"}},
    {{.name = "--retries",
      .value = "K",
      .help = "retry a failed run up to K times, without lost nodes",
      .on_submit = OnSubmit::directive},
     Key{"launch.retries"}},
    {{.name = "--no-output-limit",
      .value = "DURATION",
      .help = "end the job if no rank prints anything for this time",
      .on_submit = OnSubmit::frozen},
     Key{"launch.no-output-limit"}},
    {{.name = "--no-progress-limit",
      .value = "DURATION",
      .help = "end the job if no new step is reported for this time",
      .on_submit = OnSubmit::frozen},
     Key{"launch.no-progress-limit"}},
    {{.name = "--no-bind", .help = "do not bind ranks to cores", .on_submit = OnSubmit::frozen},
     Key{"launch.bind", "false"}},
    {{.name = "--set",
      .value = "PATH=VALUE",
      .help = "set any key of the job file, as train.epochs=1",
      .on_submit = OnSubmit::frozen},
     &JobOptions::sets},
    {{.name = "--run-dir",
      .value = "DIR",
      .help = "run directory (default: runs/NAME-ID)",
      .on_submit = OnSubmit::forwarded},
     &JobOptions::run_dir},
    {{.name = "--allocation",
      .value = "FILE",
      .help = "use the allocation in this file, which allocation --json printed",
      .on_submit = OnSubmit::refused,
      .refusal = "the scheduler chooses the nodes of a submitted job"},
     &JobOptions::allocation_file},
    {{.name = "--scheduler",
      .value = "SCHEDULER",
      .help = "use the allocation of this scheduler (default: the first found); submit: submit to it"},
     &JobOptions::scheduler},
    {{.name = "--site",
      .value = "SITE",
      .help = "preset of a known machine; auto: the one that recognizes this machine; or none",
      .on_submit = OnSubmit::frozen,
      .choices = "auto none alps aurora frontier lumi perlmutter polaris"},
     &JobOptions::site},
    {{.name = "--framework-dir",
      .value = "DIR",
      .help = "look for adapters in this folder first",
      .on_submit = OnSubmit::forwarded},
     &JobOptions::framework_dir},
};

}  // namespace

bool JobOptions::sets_key(std::string_view key) const {
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const plan::Override& one) { return one.path == key; });
}

std::span<const FlagRow<JobOptions>> job_flags() {
  return kJobFlags;
}

void add_job(Arguments& arguments, JobOptions& options) {
  arguments.argument("JOB", options.job_file, "job file (YAML)");
  arguments.flags(job_flags(), options);
  arguments.flags(host_flags(), options.hosts);
}

}  // namespace dlrun::cli
