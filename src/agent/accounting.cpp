#include "src/agent/accounting.hpp"

#include <array>

#include "src/process/child.hpp"
#include "src/process/command.hpp"

namespace dlrun::agent {
namespace {

constexpr Seconds kLimit{5};

// Tasks of PBS have no login shell's PATH.
std::optional<std::string> find_pbs_attach(const Environment& environment) {
  const std::string own = environment.get("PBS_EXEC");
  for (const std::string& place : {std::string("pbs_attach"), own.empty() ? own : own + "/bin/pbs_attach",
                                   std::string("/opt/pbs/bin/pbs_attach")}) {
    if (place.empty()) continue;
    if (auto found = find_program(place, environment, "/")) return *found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Argv> attach_command(const Environment& environment, pid_t process) {
  const std::string job = environment.get("PBS_JOBID");
  if (job.empty() || environment.find("SLURM_JOB_ID")) return std::nullopt;  // Slurm's wrappers set it too
  const auto program = find_pbs_attach(environment);
  if (!program) return std::nullopt;
  return Argv{*program, "-j", job, "-p", std::to_string(process)};
}

Result<void> Accounting::attach(pid_t process) {
  const auto command = failed_ ? std::nullopt : attach_command(environment_, process);
  if (!command) return {};
  const auto output = run_command({.argv = *command, .environment = environment_, .limit = kLimit});
  if (output && output->status.success()) return {};
  failed_ = true;
  return fail(ErrorKind::unavailable, "processes are not in PBS's accounting: pbs_attach: {}",
              output ? output->status.text() : output.error().what);
}

}  // namespace dlrun::agent
