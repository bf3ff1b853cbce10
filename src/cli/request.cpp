// From flags to a Request: every flag becomes an override of the job file's key, with the flag as its source,
// so that there is one place that checks values.
#include "src/cli/commands.hpp"

namespace dlrun::cli {
namespace {

using Override = plan::Override;

Result<Override> set_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return fail({.kind = ErrorKind::usage,
                 .what = fmt::format("--set {}: no value", text),
                 .hint = "write it as --set train.epochs=3"});
  return Override{text.substr(0, equals), text.substr(equals + 1), "--set " + text.substr(0, equals)};
}

}  // namespace

NamedHosts named_hosts(const HostFileOptions& options) {
  NamedHosts out;
  if (!options.hostfile.empty()) out.hostfile = options.hostfile;
  if (!options.private_hostfile.empty()) out.private_hostfile = options.private_hostfile;
  out.host_words = options.hosts;
  return out;
}

Result<job::Request> request_of(const JobOptions& options, const Environment& environment) {
  job::Request request;
  request.installation = TRY(this_installation());
  request.environment = request.sources.variables = environment;
  std::error_code problem;
  request.here = std::filesystem::current_path(problem);
  if (problem) return fail(ErrorKind::usage, "the working directory cannot be read: {}", problem.message());
  if (!options.frozen_job.empty() && !options.job_file.empty())
    return fail(
        {.kind = ErrorKind::usage,
         .what = fmt::format("--spec {} is a job, and so is {}", options.frozen_job, options.job_file),
         .hint = "give one of them"});
  if (!options.frozen_job.empty()) {
    request.sources.frozen = TRY(plan::read_frozen_job(options.frozen_job));
    request.sources.job_file = request.sources.frozen->job_file;
  } else {
    job::add_configuration_files(request.sources, environment, request.installation);
    if (!options.job_file.empty()) request.sources.job_file = options.job_file;
  }
  if (!request.sources.frozen && options.job_file.empty() && options.framework.empty() &&
      options.words.empty())
    return fail({.kind = ErrorKind::usage,
                 .what = "no job file and no command",
                 .hint = "dlrun JOB.yaml, or dlrun --framework mpi -- ./program"});
  request.sources.words = options.words;
  const auto add = [&](const std::string& value, const char* path, const char* flag,
                       Override::Reading reading) {
    if (!value.empty()) request.sources.overrides.push_back({path, value, flag, reading});
  };
  // --set first: a flag with a name of its own is the more specific word.
  for (const std::string& text : options.sets) request.sources.overrides.push_back(TRY(set_override(text)));
  add(options.framework, "framework", "--framework", Override::Reading::text);
  add(options.name, "name", "--name", Override::Reading::text);
  add(options.nodes, "resources.nodes", "--nodes", Override::Reading::text);
  add(options.gpus_per_node, "resources.gpus-per-node", "--gpus-per-node", Override::Reading::text);
  add(options.tasks_per_node, "resources.tasks-per-node", "--tasks-per-node", Override::Reading::text);
  add(options.cpus_per_task, "resources.cpus-per-task", "--cpus-per-task", Override::Reading::text);
  add(options.walltime, "resources.walltime", "--walltime", Override::Reading::text);
  add(options.mpi, "launch.mpi", "--mpi", Override::Reading::text);
  add(options.via, "launch.via", "--via", Override::Reading::text);
  add(options.retries, "launch.retries", "--retries", Override::Reading::text);
  add(options.no_output_limit, "launch.no-output-limit", "--no-output-limit", Override::Reading::text);
  add(options.no_progress_limit, "launch.no-progress-limit", "--no-progress-limit", Override::Reading::text);
  if (options.stage) add("true", "launch.stage", "--stage", Override::Reading::yaml);
  if (options.no_bind) add("false", "launch.bind", "--no-bind", Override::Reading::yaml);
  if (!options.allocation_file.empty()) request.allocation_file = options.allocation_file;
  if (!options.framework_dir.empty()) request.framework_dir = options.framework_dir;
  if (!options.run_dir.empty()) request.run_directory = options.run_dir;
  request.scheduler = options.scheduler;
  request.named_hosts = named_hosts(options.named);
  return request;
}

}  // namespace dlrun::cli
