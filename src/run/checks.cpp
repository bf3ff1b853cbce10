#include "src/run/checks.hpp"

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "src/base/file.hpp"
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

// A folder of this process alone; gone with the value.
class ScratchFolder {
 public:
  static Result<ScratchFolder> make() {
    std::error_code problem;
    std::string name = (std::filesystem::temp_directory_path(problem) / "dlrun-plan-XXXXXX").string();
    const int reason = problem ? problem.value() : ::mkdtemp(name.data()) == nullptr ? errno : 0;
    if (reason != 0)
      return fail({.kind = ErrorKind::io,
                   .what = fmt::format("cannot create {}: {}", name, system_reason(reason)),
                   .hint = "set TMPDIR to a folder that can be written"});
    return ScratchFolder(std::move(name));
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace

Result<void> run_plan_checks(const Prepared& job, const Environment& environment) {
  if (job.adapter.plan_checks.empty()) return {};
  const ScratchFolder folder = TRY(ScratchFolder::make());
  plan::PlanInput input = job.input;
  input.adapter.checks = job.adapter.plan_checks;
  input.run_directory = folder.path();
  plan::Plan plan = TRY(plan::make_plan(input));
  plan.working_directory = folder.path();  // the job's own may be on a cluster that is not here
  TRY(write_adapter_files(plan, folder.path()));
  return run_checks(plan, environment);
}

}  // namespace dlrun::job
