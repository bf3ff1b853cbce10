#include "src/cli/cmd_doctor.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/exit_code.hpp"
#include "src/base/json.hpp"
#include "src/base/scratch_folder.hpp"
#include "src/base/units.hpp"
#include "src/cli/request.hpp"
#include "src/cli/terminal_text.hpp"
#include "src/process/stop_signals.hpp"
#include "src/run/bad_node_memory.hpp"
#include "src/run/check_nodes.hpp"

namespace dlrun::cli {
namespace {

constexpr int kInterrupted = 130;
constexpr Seconds kStartTimeout{30};  // a person waits; a server that turns callers away is tried so long

constexpr FlagRow<DoctorCommand> kDoctorFlags[] = {
    {{.name = "--full",
      .help = "check more, which takes longer: larger files, longer network tests, allreduces"},
     &DoctorCommand::full},
    {{.name = "--dir",
      .value = "DIR",
      .help = "check the file system of this folder (default: the working directory)"},
     &DoctorCommand::directory},
};

// Of the flags of a job those that say which nodes there are, and how to reach them.
std::span<const FlagRow<JobOptions>> node_flags() {
  constexpr std::array<std::string_view, 5> names{"--via", "--stage", "--set", "--allocation", "--scheduler"};
  static const std::vector<FlagRow<JobOptions>> rows = [&] {
    std::vector<FlagRow<JobOptions>> out;
    for (const FlagRow<JobOptions>& row : job_flags())
      if (std::find(names.begin(), names.end(), row.flag.name) != names.end()) out.push_back(row);
    return out;
  }();
  return rows;
}

// The nodes of the same findings, in the order of the first of them.
struct Group {
  std::vector<HostName> hosts;
  const health::NodeReport* node;
};
std::vector<Group> grouped(const health::Report& report) {
  using health::State;
  const auto same = [](const health::NodeReport& a, const health::NodeReport& b) {
    return text_of(a, State::bad) == text_of(b, State::bad) &&
           text_of(a, State::warning) == text_of(b, State::warning) && a.forgotten == b.forgotten;
  };
  std::vector<Group> out;
  for (const health::NodeReport& node : report.nodes) {
    auto group = std::find_if(out.begin(), out.end(), [&](const Group& g) { return same(*g.node, node); });
    if (group == out.end()) group = out.insert(out.end(), {{}, &node});
    group->hosts.emplace_back(node.host);
  }
  return out;
}

Tint tint_of(health::State state) {
  return state == health::State::bad       ? Tint::red
         : state == health::State::warning ? Tint::yellow
                                           : Tint::green;
}

// A line per finding, the bad ones first.
std::vector<std::pair<health::State, std::string>> lines_of(const health::NodeReport& node) {
  std::vector<std::pair<health::State, std::string>> out;
  for (const health::State state : {health::State::bad, health::State::warning})
    for (const health::Finding& finding : node.findings)
      if (finding.state == state) out.emplace_back(state, finding.check + ": " + finding.text);
  if (out.empty()) out.emplace_back(health::State::good, "");
  if (!node.forgotten.empty())
    out.emplace_back(health::State::good, "jobs no longer leave it out for: " + node.forgotten);
  return out;
}

void print(const health::Report& report, Console& console) {
  const std::vector<Group> groups = grouped(report);
  std::size_t width = 0;
  for (const Group& group : groups) width = std::max(width, compress_hostlist(group.hosts).size());
  for (const Group& group : groups) {
    std::string hosts = compress_hostlist(group.hosts);
    for (const auto& [state, text] : lines_of(*group.node)) {
      const std::string word = fmt::format("{:<7}", health::kStates.name(state));
      console.out(fmt::format("{:<{}}  {}{}{}", std::exchange(hosts, {}), width,
                              console.tinted_out(word, tint_of(state)), text.empty() ? "" : "  ",
                              plain_text(text)));
    }
  }
}

std::string summary(const health::Report& report) {
  using health::State;
  return fmt::format("dlrun: {} good, {} with warnings, {} bad; checked in {}", report.count(State::good),
                     report.count(State::warning), report.count(State::bad), format_duration(report.took));
}

// A job may wait longer for its agents than a person for news of them, unless somebody has said how long.
plan::LaunchSpec launch_of(const plan::JobSpec& spec) {
  plan::LaunchSpec out = spec.launch;
  if (plan::place_of(spec, "launch.start-timeout").empty())
    out.start_timeout = std::min(out.start_timeout, kStartTimeout);
  return out;
}

// Absolute: the nodes' agents run in another folder.
Result<std::filesystem::path> folder_of(const std::string& directory) {
  std::error_code problem;
  const auto out = std::filesystem::canonical(directory.empty() ? "." : directory, problem);
  if (problem) return fail(ErrorKind::usage, "--dir {}: {}", directory, problem.message());
  // The nodes are told in JSON: they would look for another folder, and be taken for bad.
  if (is_json_text(out.string())) return out;
  return fail(Error{.kind = ErrorKind::usage,
                    .what = "the name of the folder that is checked is not UTF-8",
                    .hint = "give another one by --dir"});
}

}  // namespace

const char* const DoctorCommand::kExamples = R"(Examples:
  dlrun doctor                          inside a job: its nodes; elsewhere this machine
  dlrun doctor --hosts 'n[1-64]'        these nodes, by ssh
  dlrun doctor --full --dir "$SCRATCH" --json    the longer checks, as JSON)";

void DoctorCommand::add(Arguments& arguments) {
  arguments.flags<DoctorCommand>(kDoctorFlags, *this);
  arguments.flags(node_flags(), job);
  arguments.flags(host_flags(), job.hosts);
}

Result<int> DoctorCommand::run(const Context& context) {
  hold_stop_signals();  // they end the checks, and the agents with them
  job.overrides.push_back({"framework", "plain", "dlrun doctor"});
  job.program = {"true"};
  const job::Request request = TRY(request_of(job, context.environment));
  const plan::LaunchSpec launch = launch_of(TRY(job_spec_of(request)));
  const auto begun = launch::begin_launcher(request.environment);
  const Allocation allocation = TRY(allocation_of(request));
  const std::filesystem::path folder = TRY(folder_of(directory));
  const ScratchFolder scratch = TRY(ScratchFolder::make_in(folder, ".dlrun-doctor"));
  const plan::Plan plan = job::plan_to_check(allocation, launch, scratch.path());
  auto launcher = TRY(
      launch::choose_launcher(plan, job::launch_settings(launch, allocation, request.environment, begun)));
  auto report = TRY(job::check_nodes(
      {.plan = plan,
       .launcher = std::move(launcher),
       .level = full ? health::Level::full : health::Level::quick,
       .directory = folder.string(),
       .phase = [&](const std::string& text) { context.console.status_line("dlrun: " + text); }}));
  context.console.clear_status_line();
  if (!report) return kInterrupted;
  const health::BadNodes memory(request.environment,
                                job::cluster_of(allocation.scheduler, request.environment));
  const std::string problem = job::learn(memory, *report, launch.bad_node_memory, SystemClock().now());
  if (!problem.empty()) context.console.say("dlrun: warning: bad nodes are not remembered: " + problem);
  if (context.common.json)
    TRY(context.console.data(to_pretty_text(health::to_json(*report))));
  else
    print(*report, context.console);
  context.console.say(summary(*report));
  return report->count(health::State::bad) == 0 ? 0 : to_int(ExitCode::lost);
}

}  // namespace dlrun::cli
