#include "src/run/leave_bad_nodes_out.hpp"

#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/file.hpp"
#include "src/plan/make_plan.hpp"
#include "src/plan/node_inventory.hpp"
#include "src/plan/node_range.hpp"
#include "src/run/bad_node_memory.hpp"
#include "src/run/check_nodes.hpp"

namespace dlrun::job {
namespace {

std::vector<std::string> hosts_of(const std::vector<health::BadNode>& nodes) {
  std::vector<std::string> out;
  for (const health::BadNode& node : nodes) out.push_back(node.host);
  return out;
}

std::string list_of(const std::vector<std::string>& hosts) {
  std::vector<HostName> names(hosts.begin(), hosts.end());
  return compress_hostlist(names);
}

Error too_few(std::size_t needed, const health::Report& report, std::size_t left) {
  Error error{
      .kind = ErrorKind::lost,
      .what = fmt::format("{} of {} nodes failed the checks (launch.check), and the run needs {} of the "
                          "{} that are left",
                          report.count(health::State::bad), report.nodes.size(), needed, left),
      .where = {},
      .hint = "ask the scheduler for one node more than the job's resources.nodes",
      .also = {}};
  for (const health::NodeReport& node : report.nodes)
    if (node.state == health::State::bad)
      error.also.push_back(node.host + ": " + health::text_of(node, health::State::bad));
  return error;
}

Result<void> plan_without(Prepared& job, const std::vector<health::BadNode>& left_out) {
  const std::vector<std::string> hosts = hosts_of(left_out);
  job.allocation = without_hosts(std::move(job.allocation), hosts);
  job.allocation.evidence.push_back("left out by launch.check: " + list_of(hosts));
  if (!job.spec.resources.min_nodes) job.input.spec.resources.nodes = static_cast<int>(job.plan.nodes.size());
  job.input.allocation = plan::with_stand_ins(job.allocation, job.spec);
  job.plan = TRY(plan::make_plan(job.input));
  return {};
}

std::size_t fewest_of(const Prepared& job) {
  return plan::fewest_nodes(job.spec.resources, job.plan.nodes.size());
}

// Those that are remembered stay out of it where the others are enough; else they are looked at again.
std::vector<health::BadNode> left_out_unseen(const Prepared& job, const health::BadNodes& memory,
                                             Instant now) {
  std::vector<health::BadNode> out = remembered_in(job.allocation, memory.all(now));
  if (job.allocation.nodes.size() - out.size() < fewest_of(job)) out.clear();
  return out;
}

void say(const CheckedNodes& checked, RunStatus& status) {
  for (const health::BadNode& node : checked.left_out)
    status.note(fmt::format("{} is left out: {}", node.host, node.reason));
  for (const health::NodeReport& node : checked.report->nodes)
    if (node.state == health::State::warning)
      status.note(fmt::format("warning: {}: {}", node.host, health::text_of(node, health::State::warning)));
}

}  // namespace

Result<CheckedNodes> leave_bad_nodes_out(Prepared& job, const Environment& environment,
                                         const std::optional<launch::BegunLauncher>& begun, Instant now,
                                         RunStatus& status) {
  const health::BadNodes memory(environment, cluster_of(job.allocation.scheduler, environment));
  CheckedNodes out{.report = {}, .left_out = left_out_unseen(job, memory, now)};
  const Allocation candidates = without_hosts(job.allocation, hosts_of(out.left_out));
  const plan::Plan plan = plan_to_check(candidates, job.spec.launch, job.plan.run_directory);
  auto launcher =
      TRY(launch::choose_launcher(plan, launch_settings(job.spec.launch, candidates, environment, begun)));
  const bool full = job.spec.launch.check == plan::CheckUse::full;
  out.report = TRY(check_nodes({.plan = plan,
                                .launcher = std::move(launcher),
                                .level = full ? health::Level::full : health::Level::quick,
                                .directory = job.plan.run_directory,
                                .phase = [&](const std::string& text) { status.phase(text); }}));
  if (!out.report) return out;
  TRY(replace_file(job.plan.run_directory + "/doctor.json", to_pretty_text(health::to_json(*out.report)),
                   Durability::none));
  const std::string problem = learn(memory, *out.report, job.spec.launch.bad_node_memory, now);
  if (!problem.empty()) status.note("warning: bad nodes are not remembered: " + problem);
  for (const health::NodeReport& node : out.report->nodes)
    if (node.state == health::State::bad)
      out.left_out.push_back({node.host, health::text_of(node, health::State::bad), now});
  const std::size_t left = job.allocation.nodes.size() - out.left_out.size();
  if (left < fewest_of(job)) return fail(too_few(fewest_of(job), *out.report, left));
  if (!out.left_out.empty()) TRY(plan_without(job, out.left_out));
  say(out, status);
  return out;
}

Json to_json(const CheckedNodes& checked) {
  Json left_out = Json::array();
  for (const health::BadNode& node : checked.left_out)
    left_out.push_back({{"host", node.host}, {"reason", node.reason}});
  return {{"seconds", checked.report ? Json(checked.report->took.count()) : Json(nullptr)},
          {"left_out", std::move(left_out)}};
}

}  // namespace dlrun::job
