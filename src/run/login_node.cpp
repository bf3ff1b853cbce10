#include "src/run/login_node.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>

#include <fmt/core.h>

#include "src/process/child.hpp"

namespace dlrun::job {
namespace {

// A program alone says little: packages install it on laptops too.
struct SubmitHost {
  const char *program, *scheduler, *variable;
  std::array<const char*, 2> configuration;
};

constexpr SubmitHost kSubmitHosts[] = {
    {"sbatch", "Slurm", "SLURM_CONF", {"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"}},
    {"qsub", "PBS", "PBS_CONF_FILE", {"/etc/pbs.conf", ""}},
    {"qsub", "Torque", "PBS_DEFAULT", {"/var/spool/torque/server_name", ""}},
    {"qsub", "Grid Engine", "SGE_ROOT", {"", ""}},
    {"bsub", "LSF", "LSF_ENVDIR", {"/etc/lsf.conf", ""}},
};

bool is_set_up(const SubmitHost& host, const Environment& environment) {
  if (!find_program(host.program, environment, "/")) return false;
  if (environment.find(host.variable)) return true;
  std::error_code problem;
  for (const std::string file : host.configuration)
    if (!file.empty() && std::filesystem::exists(file, problem)) return true;
  return false;
}

}  // namespace

std::optional<std::string> login_node_warning(const Request& request, const Allocation& allocation) {
  if (allocation.scheduler != "local" || request.scheduler != "auto" || request.allocation_file)
    return std::nullopt;
  const auto host = std::find_if(std::begin(kSubmitHosts), std::end(kSubmitHosts),
                                 [&](const SubmitHost& one) { return is_set_up(one, request.environment); });
  if (host == std::end(kSubmitHosts)) return std::nullopt;
  return fmt::format(
      "this looks like a login node ({}), and the job runs on it; dlrun submit JOB.yaml submits it, "
      "--scheduler local runs it here without this warning",
      host->scheduler);
}

}  // namespace dlrun::job
