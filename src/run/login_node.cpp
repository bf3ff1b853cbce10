#include "src/run/login_node.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "schedulers/scheduler.hpp"
#include "src/process/child.hpp"

namespace dlrun::job {
namespace {

bool is_submit_host(const Scheduler& scheduler, const Environment& environment) {
  const auto& [variable, files] = scheduler.submit_host;
  if (variable.empty() || !find_program(std::string(scheduler.submit_program), environment, "/"))
    return false;
  if (environment.find(variable)) return true;
  std::error_code problem;
  return std::any_of(files.begin(), files.end(),
                     [&](const std::string& file) { return std::filesystem::exists(file, problem); });
}

}  // namespace

std::optional<std::string> login_node_warning(const Request& request, const Allocation& allocation) {
  if (allocation.scheduler != "local" || request.scheduler != "auto" || request.allocation_file)
    return std::nullopt;
  const auto& all = all_schedulers();
  const auto host = std::find_if(
      all.begin(), all.end(), [&](const Scheduler& one) { return is_submit_host(one, request.environment); });
  if (host == all.end()) return std::nullopt;
  return fmt::format(
      "this looks like a login node ({}), and the job runs on it; dlrun submit JOB.yaml submits it, "
      "--scheduler local runs it here without this warning",
      host->title);
}

}  // namespace dlrun::job
