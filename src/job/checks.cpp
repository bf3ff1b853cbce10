#include "src/job/checks.hpp"

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "src/base/exit_code.hpp"
#include "src/base/file.hpp"
#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "src/job/run_directory.hpp"
#include "src/plan/secret_words.hpp"
#include "src/process/command.hpp"

namespace dlrun::job {
namespace {

// A program's own message without its name and the word that we put before it again.
std::string without_prefix(std::string_view text) {
  if (const std::size_t at = text.find("error: "); at != std::string_view::npos && at < 40)
    text.remove_prefix(at + 7);
  return std::string(text);
}

ErrorKind kind_of_exit(int code) {
  for (const ErrorKind kind :
       {ErrorKind::usage, ErrorKind::input, ErrorKind::allocation, ErrorKind::unavailable, ErrorKind::io})
    if (to_int(exit_code(kind)) == code) return kind;
  return ErrorKind::input;
}

}  // namespace

Result<void> run_checks(const plan::Plan& plan, const Environment& environment) {
  for (const Argv& argv : plan.checks) {
    const auto output = TRY(
        run_command({.argv = argv, .environment = environment, .working_directory = plan.working_directory}));
    if (output.status.success()) continue;
    const std::string said(trim(output.err.empty() ? output.out : output.err));
    const Argv shown = plan::without_secret_values(argv, plan.environment_rules.secrets);
    return fail(Error{.kind = kind_of_exit(output.status.code()),
                      .what = said.empty() ? fmt::format("{}: {}", shell_join(shown), output.status.text())
                                           : without_prefix(said)});
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
