#include "src/cli/request.hpp"

#include "src/cli/set_conflicts.hpp"

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

// Which job: of a submission, of a file, or of the command line alone.
Result<void> name_job(const JobOptions& options, const Environment& environment, job::Request& request) {
  if (!options.frozen_job.empty() && !options.job_file.empty())
    return fail(
        {.kind = ErrorKind::usage,
         .what = fmt::format("--spec {} and {} both give a job", options.frozen_job, options.job_file),
         .hint = "give one of them"});
  if (!options.frozen_job.empty()) {
    request.sources.frozen = TRY(plan::read_frozen_job(options.frozen_job));
    request.sources.job_file = request.sources.frozen->job_file;
  } else {
    TRY(job::add_configuration_files(request.sources, options.site, environment, request.installation));
    if (!options.job_file.empty()) request.sources.job_file = options.job_file;
  }
  if (!request.sources.frozen && options.job_file.empty() && !options.sets_key("framework") &&
      options.program.empty())
    return fail({.kind = ErrorKind::usage,
                 .what = "no job file and no command",
                 .hint = "dlrun JOB.yaml, or dlrun --framework mpi -- ./program"});
  return {};
}

}  // namespace

Result<job::Request> request_of(const JobOptions& options, const Environment& environment) {
  job::Request request;
  request.installation = TRY(this_installation());
  request.environment = request.sources.variables = environment;
  std::error_code problem;
  request.here = std::filesystem::current_path(problem);
  if (problem) return fail(ErrorKind::usage, "the working directory cannot be read: {}", problem.message());
  TRY(name_job(options, environment, request));
  request.sources.words = options.program;
  for (const std::string& text : options.sets) request.sources.overrides.push_back(TRY(set_override(text)));
  TRY(check_set_conflicts(options.overrides, request.sources.overrides));
  for (const Override& one : options.overrides) request.sources.overrides.push_back(one);
  if (!options.allocation_file.empty()) request.allocation_file = options.allocation_file;
  if (!options.framework_dir.empty()) request.framework_dir = options.framework_dir;
  if (!options.run_dir.empty()) request.run_directory = options.run_dir;
  request.scheduler = options.scheduler;
  request.named_hosts = options.hosts.named();
  return request;
}

}  // namespace dlrun::cli
