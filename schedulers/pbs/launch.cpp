// PBS's task manager starts one agent on each node of the job that we are in, and ends it with the job. Its
// tasks have no standard input, and their output is the job's own.
#include "schedulers/pbs/launch.hpp"

#include "schedulers/pbs/path.hpp"
#include "src/base/exit_code.hpp"
#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/process/child.hpp"

namespace dlrun {

std::vector<LaunchCommand> pbs_commands(const AgentsToLaunch& agents, PbsStarter starter,
                                        const Environment& environment) {
  return one_command_per_node(agents, environment, [&](const std::string& host) {
    return starter == PbsStarter::pbs_tmrsh ? Argv{"pbs_tmrsh", host} : Argv{"pbsdsh", "-h", host};
  });
}

namespace {

constexpr int kNotStarted = 254;  // of pbs_tmrsh: the task's program could not be started

tl::unexpected<Error> no_starter(const std::string& path) {
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = "neither pbs_tmrsh nor pbsdsh is found; they start the agents under PBS",
                    .where = {},
                    .hint = fmt::format("load PBS's module in the job, or use --via ssh; PATH is {}", path)});
}

// mpiprocs=0: PBS's task manager has no nodes then, and knows none of ours.
Result<void> need_node_file(const Environment& environment) {
  const auto file = environment.find("PBS_NODEFILE");
  const auto text = file ? read_file(*file) : Result<std::string>("unknown");
  if (!text || !trim(*text).empty()) return {};
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = "PBS starts nothing on the nodes of this job: it has mpiprocs=0",
                    .where = {},
                    .hint = "use --via ssh, or request mpiprocs=1 or more"});
}

Result<CommandTraits> pbs_launcher(const Environment& environment) {
  TRY(require_job(environment, "PBS_JOBID", "pbs", "PBS"));
  TRY(need_node_file(environment));
  const Environment with_path = with_pbs_path(environment);
  const bool tmrsh = find_program("pbs_tmrsh", with_path, "").has_value();
  if (!tmrsh && !find_program("pbsdsh", with_path, "")) return no_starter(with_path.get("PATH"));
  const PbsStarter starter = tmrsh ? PbsStarter::pbs_tmrsh : PbsStarter::pbsdsh;
  // What a task says goes to the job's own output, and its end alone comes here.
  return CommandTraits{
      .name = "pbs",
      .commands =
          [starter, with_path](const AgentsToLaunch& agents) {
            return Result<std::vector<LaunchCommand>>(pbs_commands(agents, starter, with_path));
          },
      .code_hints = {
          {kNotStarted,
           "dlrun must be at the same path on every node; --stage copies it to nodes that do not have it"},
          {to_int(ExitCode::input),
           "every node must see the run directory: name one that they share, with --run-dir"}}};
}

}  // namespace

PendingLauncher begin_pbs_launcher(const Environment& environment) {
  return [environment] { return pbs_launcher(environment); };
}

}  // namespace dlrun
