// The pbs way: PBS's task manager starts one agent on each node of the job that we stand in, and ends it with
// the job. Its tasks have no standard input, and their output is the job's own.
#include "schedulers/pbs/path.hpp"
#include "src/base/exit_code.hpp"
#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/launch/command_traits.hpp"
#include "src/process/child.hpp"

namespace dlrun::launch {

std::vector<EngineCommand> pbs_commands(const plan::Plan& plan, const AgentCommand& agent, PbsStarter starter,
                                        const Environment& environment) {
  return one_command_per_node(plan, agent, environment, [&](const std::string& host) {
    return starter == PbsStarter::pbs_tmrsh ? Argv{"pbs_tmrsh", host} : Argv{"pbsdsh", "-h", host};
  });
}

namespace {

constexpr int kNotStarted = 254;  // of pbs_tmrsh: the task's program could not be started

tl::unexpected<Error> no_starter(const std::string& path) {
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = "neither pbs_tmrsh nor pbsdsh is found: PBS's programs start the agents",
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
                    .hint = "use --via ssh, or ask for mpiprocs=1 or more"});
}

}  // namespace

Result<std::unique_ptr<Launcher>> make_pbs_launcher(const LaunchSettings& settings) {
  TRY(need_job(settings.environment, "PBS_JOBID", "pbs", "PBS"));
  TRY(need_node_file(settings.environment));
  LaunchSettings with_path = settings;
  with_path.environment = with_pbs_path(settings.environment);
  const Environment& environment = with_path.environment;
  const bool tmrsh = find_program("pbs_tmrsh", environment, "").has_value();
  if (!tmrsh && !find_program("pbsdsh", environment, "")) return no_starter(environment.get("PATH"));
  const PbsStarter starter = tmrsh ? PbsStarter::pbs_tmrsh : PbsStarter::pbsdsh;
  // What a task says goes to the job's own output, and its end alone comes here.
  CommandTraits traits{
      .name = "pbs",
      .code_hints = {{kNotStarted,
                      "dlrun must be at the same place on every node; --stage copies it to those "
                      "that do not have it"},
                     {to_int(ExitCode::input),
                      "every node must see the run directory: name one that they share, with --run-dir"}}};
  return make_engine_launcher(
      std::move(traits), with_path,
      [starter, environment](const plan::Plan& plan, const AgentCommand& agent) {
        return Result<std::vector<EngineCommand>>(pbs_commands(plan, agent, starter, environment));
      });
}

}  // namespace dlrun::launch
