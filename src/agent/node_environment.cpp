#include "src/agent/node_environment.hpp"

#include <algorithm>
#include <array>

#include "schedulers/scheduler.hpp"

namespace dlrun::agent {
namespace {

// Who and where we are here, and which devices are ours here: the head's values would be another node's.
constexpr std::array<std::string_view, 23> kOwnNames{"HOSTNAME",
                                                     "HOST",
                                                     "PWD",
                                                     "OLDPWD",
                                                     "SHLVL",
                                                     "_",
                                                     "HOME",
                                                     "USER",
                                                     "LOGNAME",
                                                     "SHELL",
                                                     "MAIL",
                                                     "DISPLAY",
                                                     "XAUTHORITY",
                                                     "TMPDIR",
                                                     "TMP",
                                                     "TEMP",
                                                     "KRB5CCNAME",
                                                     "DBUS_SESSION_BUS_ADDRESS",
                                                     "CUDA_VISIBLE_DEVICES",
                                                     "ROCR_VISIBLE_DEVICES",
                                                     "HIP_VISIBLE_DEVICES",
                                                     "ZE_AFFINITY_MASK",
                                                     "GPU_DEVICE_ORDINAL"};
constexpr std::array<std::string_view, 3> kOwnPrefixes{"SSH_", "XDG_", "SYSTEMD_"};

bool is_node_local(std::string_view name) {
  return std::any_of(all_schedulers().begin(), all_schedulers().end(), [&](const Scheduler& scheduler) {
    const auto& names = scheduler.variables.node_local;
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

bool is_own(std::string_view name) {
  return std::find(kOwnNames.begin(), kOwnNames.end(), name) != kOwnNames.end() || is_node_local(name) ||
         std::any_of(kOwnPrefixes.begin(), kOwnPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

Environment merge_node_environment(const Environment& heads, const Environment& own) {
  Environment out;
  for (const auto& [name, value] : heads.all())
    if (!is_own(name)) out.set(name, value);
  for (const auto& [name, value] : own.all())
    if (is_own(name)) out.set(name, value);
  return out;
}

}  // namespace dlrun::agent
