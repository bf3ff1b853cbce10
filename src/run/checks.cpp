#include "src/run/checks.hpp"

#include <filesystem>

#include "src/base/scratch_folder.hpp"
#include "src/plan/job_checks.hpp"
#include "src/process/command.hpp"
#include "src/run/run_directory.hpp"

namespace dlrun::job {

Result<void> run_checks(const plan::Plan& plan, const Environment& environment) {
  for (const Argv& argv : plan.checks) {
    const auto output = TRY(
        run_command({.argv = argv, .environment = environment, .working_directory = plan.working_directory}));
    if (output.status.success()) continue;
    return fail(plan::check_error({argv}, plan.environment_rules,
                                  output.err.empty() ? output.out : output.err, output.status.text(),
                                  output.status.code()));
  }
  return {};
}

namespace {

Result<ScratchFolder> make_scratch_folder() {
  std::error_code problem;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(problem);
  if (problem)
    return fail({.kind = ErrorKind::io,
                 .what = fmt::format("cannot create a folder for temporary files: {}", problem.message()),
                 .hint = "set TMPDIR to a folder that can be written"});
  auto made = ScratchFolder::make_in(parent, "dlrun-plan");
  if (!made) made.error().hint = "set TMPDIR to a folder that can be written";
  return made;
}

}  // namespace

Result<void> run_plan_checks(const Prepared& job, const Environment& environment) {
  if (job.adapter.plan_checks.empty()) return {};
  const ScratchFolder folder = TRY(make_scratch_folder());
  plan::PlanInput input = job.input;
  input.adapter.checks = job.adapter.plan_checks;
  input.run_directory = folder.path();
  plan::Plan plan = TRY(plan::make_plan(input));
  plan.working_directory = folder.path();  // the job's own may be on a cluster that is not here
  TRY(write_adapter_files(plan, folder.path()));
  return run_checks(plan, environment);
}

}  // namespace dlrun::job
