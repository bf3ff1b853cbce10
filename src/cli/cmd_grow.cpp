#include "src/cli/cmd_grow.hpp"

#include "src/cli/ask_hosts.hpp"
#include "src/cli/usage_error.hpp"
#include "src/cli/world_of.hpp"
#include "src/report/find_run.hpp"

namespace dlrun::cli {
namespace {

constexpr FlagRow<GrowCommand> kGrowFlags[] = {
    {{.name = "--hosts", .value = "LIST", .help = "the hosts that join, as in c5,c[7-8]"},
     &GrowCommand::hosts},
};

}  // namespace

const char* const GrowCommand::kExamples = R"(Examples:
  dlrun grow small --hosts c5               node c5 joins the newest run of job small
  dlrun grow 4711 --hosts c[5-6] --json     two nodes of the allocation join the run of the scheduler's job 4711
  dlrun stop small --hosts c5               and c5 leaves it again)";

void GrowCommand::add(Arguments& arguments) {
  arguments.argument("RUN", asked, "a path, a folder below runs/, a job's name or its id");
  arguments.flags<GrowCommand>(kGrowFlags, *this);
}

Result<void> GrowCommand::finish(const ExtraArguments&) {
  if (asked.empty())
    return fail(
        usage_error("grow", "the run is missing", "dlrun grow RUN --hosts LIST; dlrun list shows the runs"));
  if (hosts.empty()) return fail(usage_error("grow", "--hosts is missing", "dlrun grow RUN --hosts c5,c6"));
  return {};
}

Result<int> GrowCommand::run(const Context& context) {
  std::error_code problem;
  const report::RunEntry entry = TRY(report::find_run(std::filesystem::current_path(problem), asked));
  const WorldOf world_of(context);
  return ask_hosts(report::view_of(report::resolved(entry), world_of.world()), job::HostsChange::join,
                   TRY(hosts_of_flag("--hosts", hosts)), context);
}

}  // namespace dlrun::cli
