#include "src/plan/run_directory.hpp"

#include <algorithm>
#include <array>

#include "src/plan/job_spec.hpp"

namespace dlrun::plan {
namespace {

constexpr std::array<std::string_view, 19> kOwnFiles{
    "spec.json",          "allocation.json", "plan.json",   "record.json",       "events.jsonl",
    "checkpoint-request", "nodes",           "logs",        "attempts",          "job-start.json",
    "restarts",           ".lease",          "status.json", "stop-request",      "stacks-request",
    "stacks.json",        "log-times",       "hosts.json",  "hosts-request.json"};
// Tokens and copies of dlrun, whose names go on with a number or an end.
constexpr std::array<std::string_view, 2> kOwnPrefixes{"agent-token", "dlrun-copy"};

std::string node_log_path(const Plan& plan, NodeIndex node, std::string_view of) {
  const NodePlan& entry = plan.nodes.at(static_cast<std::size_t>(node.get()));
  return fmt::format("{}/logs/{}-{:04}-{}.log", plan.run_directory, of, node.get() + 1,
                     as_job_name(entry.host.get()));
}

}  // namespace

std::string node_script_name(const NodePlan& node) {
  return fmt::format("nodes/{:04}-{}.sh", node.index.get() + 1, as_job_name(node.host.get()));
}

std::string node_script_path(const Plan& plan, NodeIndex node) {
  return plan.run_directory + "/" + node_script_name(plan.nodes.at(static_cast<std::size_t>(node.get())));
}

std::string rank_log_path(const Plan& plan, const RankPlan& rank) {
  return fmt::format("{}/logs/{:04}-{}-{}.log", plan.run_directory, rank.rank.get(), as_job_name(rank.role),
                     rank.task_index);
}

std::filesystem::path rank_log_times_path(const std::filesystem::path& rank_log) {
  return rank_log.parent_path().parent_path() / "log-times" / rank_log.filename();
}

std::string prolog_log_path(const Plan& plan, NodeIndex node) {
  return node_log_path(plan, node, "prolog");
}

std::string agent_log_path(const Plan& plan, NodeIndex node) {
  return node_log_path(plan, node, "agent");
}

std::string head_log_path(const Plan& plan) {
  return plan.run_directory + "/logs/head.log";
}

std::string checkpoint_request_path(const Plan& plan) {
  return plan.run_directory + "/checkpoint-request";
}

bool is_own_file(const std::filesystem::path& name) {
  const std::string first = name.empty() ? std::string() : name.begin()->string();
  return std::find(kOwnFiles.begin(), kOwnFiles.end(), first) != kOwnFiles.end() ||
         std::any_of(kOwnPrefixes.begin(), kOwnPrefixes.end(),
                     [&](std::string_view prefix) { return first.starts_with(prefix); });
}

}  // namespace dlrun::plan
