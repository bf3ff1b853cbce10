#include "src/cli/commands.hpp"

#include <algorithm>

#include "src/cli/cmd_allocation.hpp"
#include "src/cli/cmd_bench.hpp"
#include "src/cli/cmd_bench_report.hpp"
#include "src/cli/cmd_chain.hpp"
#include "src/cli/cmd_complete.hpp"
#include "src/cli/cmd_diff.hpp"
#include "src/cli/cmd_doctor.hpp"
#include "src/cli/cmd_frameworks.hpp"
#include "src/cli/cmd_grow.hpp"
#include "src/cli/cmd_hosts.hpp"
#include "src/cli/cmd_list.hpp"
#include "src/cli/cmd_logs.hpp"
#include "src/cli/cmd_plan.hpp"
#include "src/cli/cmd_report.hpp"
#include "src/cli/cmd_run.hpp"
#include "src/cli/cmd_slurm_end.hpp"
#include "src/cli/cmd_stacks.hpp"
#include "src/cli/cmd_status.hpp"
#include "src/cli/cmd_stop.hpp"
#include "src/cli/cmd_submit.hpp"

namespace dlrun::cli {
namespace {

template <class Which>
std::unique_ptr<Command> make() {
  return std::make_unique<Which>();
}

const CommandRow kCommands[] = {
    {"run", "[JOB] [-- ARGUMENT...]", "run a job", RunCommand::kExamples, make<RunCommand>},
    {"plan", "[JOB] [-- ARGUMENT...]", "show what would run where, and start nothing", PlanCommand::kExamples,
     make<PlanCommand>},
    {"submit", "[JOB] [-- ARGUMENT...]", "submit the job to the scheduler of this cluster",
     SubmitCommand::kExamples, make<SubmitCommand>},
    {"chain", "status [DIR] | stop DIR", "show or stop a chain of jobs", ChainCommand::kExamples,
     make<ChainCommand>},
    {"list", "[DIR]", "show the runs, submissions and chains of this folder", ListCommand::kExamples,
     make<ListCommand>},
    {"status", "[RUN]", "show the state of a run, also live", StatusCommand::kExamples, make<StatusCommand>},
    {"logs", "[RUN]", "show what the ranks of a run printed", LogsCommand::kExamples, make<LogsCommand>},
    {"stop", "RUN", "end a run, a submitted job or a chain", StopCommand::kExamples, make<StopCommand>},
    {"grow", "RUN", "let nodes join an elastic run", GrowCommand::kExamples, make<GrowCommand>},
    {"stacks", "RUN", "show which functions the ranks of a run are in", StacksCommand::kExamples,
     make<StacksCommand>},
    {"report", "[RUN...]", "write what runs and chains did as one HTML page", ReportCommand::kExamples,
     make<ReportCommand>},
    {"bench", "[JOB] [-- ARGUMENT...]", "measure a job at many points: nodes, batch, threads, ...",
     BenchCommand::kExamples, make<BenchCommand>},
    {"bench-report", "BENCH", "show the results of dlrun bench as tables and plots",
     BenchReportCommand::kExamples, make<BenchReportCommand>},
    {"doctor", "", "check nodes before ranks run on them", DoctorCommand::kExamples, make<DoctorCommand>},
    {"diff", "A B", "show what differs between two runs", DiffCommand::kExamples, make<DiffCommand>},
    {"allocation", "", "show the nodes of the allocation, and the evidence for them",
     AllocationCommand::kExamples, make<AllocationCommand>},
    {"hosts", "expand|compress|count LIST...", "expand, compress and count host lists",
     HostsCommand::kExamples, make<HostsCommand>},
    {"frameworks", "[NAME | check FILE]", "list the adapters, show one, or check one",
     FrameworksCommand::kExamples, make<FrameworksCommand>},
    {"slurm-end", "", "internal: the end of a Slurm job, from libslurm", "", make<SlurmEndCommand>,
     Audience::dlrun_itself},
    {"complete", "", "internal: the commands, or the flags of one, for a shell's completion", "",
     make<CompleteCommand>, Audience::dlrun_itself},
};

}  // namespace

std::span<const CommandRow> commands() {
  return kCommands;
}

const CommandRow* find_command(std::string_view name) {
  const auto found = std::find_if(std::begin(kCommands), std::end(kCommands),
                                  [&](const CommandRow& row) { return row.name == name; });
  return found == std::end(kCommands) ? nullptr : found;
}

std::vector<std::string> command_names() {
  std::vector<std::string> out;
  for (const CommandRow& row : kCommands)
    if (row.audience == Audience::people) out.emplace_back(row.name);
  return out;
}

}  // namespace dlrun::cli
