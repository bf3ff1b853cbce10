// The section launch: how ranks are started, watched and ended.
#include <array>

#include "schedulers/scheduler.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/plan/enum_choice.hpp"
#include "src/plan/job_sections.hpp"

namespace dlrun::plan {
namespace {

using yaml::Fields;
using yaml::Node;

// libssh puts it into the words of ssh_config's commands, which are a shell's.
bool is_user_name(std::string_view text) {
  return !text.empty() && text[0] != '-' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@+$") ==
             std::string_view::npos;
}

Result<SshSpec> read_ssh(Fields fields) {
  SshSpec out;
  out.host_keys = TRY(enum_or(fields, "host-keys", out.host_keys, kHostKeys));
  out.user = TRY(fields.text_or("user", ""));
  if (const auto port = TRY(optional_integer(fields, "port", 1, 65535)))
    out.port = Port(static_cast<std::uint16_t>(*port));
  out.connect_timeout = TRY(fields.duration_or("connect-timeout", out.connect_timeout));
  TRY(fields.finish());
  if (const Node* user = fields.find("user"); user != nullptr && !is_user_name(out.user))
    return yaml::error_at(*user, fmt::format("launch.ssh.user: '{}' is not a user name", out.user));
  if (out.connect_timeout.count() <= 0)
    return yaml::error_at(*fields.find("connect-timeout"),
                          "launch.ssh.connect-timeout must be longer than 0s");
  return out;
}

Result<std::optional<Wrap>> read_wrap(Fields& launch) {
  const Node* node = launch.find("wrap");
  if (node == nullptr) return std::optional<Wrap>();
  Fields fields = TRY(Fields::of(*node, "launch.wrap"));
  Wrap out;
  const Node& command = *TRY(fields.require("command"));
  out.command = TRY(fields.text_list("command"));
  if (out.command.empty() || out.command.front().empty())
    return yaml::error_at(command, "launch.wrap.command is empty",
                          "for example: [nsys, profile, -o, rank-%q{DLRUN_RANK}]");
  for (const std::string& word : TRY(fields.text_list("ranks"))) {
    const auto rank = parse_integer(word, 0, 1 << 24);
    if (!rank)
      return yaml::error_at(*fields.find("ranks"), fmt::format("launch.wrap.ranks: '{}' is not a rank", word),
                            "ranks are whole numbers from 0; without the key, all ranks are wrapped");
    out.ranks.emplace_back(static_cast<int>(*rank));
  }
  TRY(fields.finish());
  return std::optional(out);
}

Result<MemoryPolicy> read_memory(Fields& fields) {
  MemoryPolicy out;
  out.numa = TRY(fields.text_or("memory", ""));
  if (out.numa == "system") out.numa.clear();
  out.huge_pages = TRY(enum_or(fields, "huge-pages", out.huge_pages, kHugePages));
  const std::string problem = out.numa.empty() ? "" : check_numa(out.numa);
  if (!problem.empty())
    return yaml::error_at(*fields.find("memory"), "launch.memory: " + problem,
                          "write local, interleave, system, or NUMA nodes as 0,2-3");
  return out;
}

}  // namespace

Result<LaunchSpec> read_launch(yaml::Fields fields) {
  std::vector<std::string> launchers = launcher_names();
  launchers.insert(launchers.begin(), "auto");
  static const std::array<std::string, 5> protocols{"auto", "pmix", "pmi1", "native", "none"};
  LaunchSpec out;
  out.via = TRY(choice(fields, "via", out.via, launchers));
  out.fan_out = static_cast<int>(TRY(fields.integer_or("fan-out", out.fan_out, 1, 10000)));
  out.start_timeout = TRY(fields.duration_or("start-timeout", out.start_timeout));
  out.setup_timeout = TRY(fields.duration_or("setup-timeout", out.setup_timeout));
  out.grace = TRY(fields.duration_or("grace", out.grace));
  out.lost_after = TRY(fields.duration_or("lost-after", out.lost_after));
  out.no_output = TRY(fields.duration_or("no-output-limit", out.no_output));
  out.no_progress = TRY(fields.duration_or("no-progress-limit", out.no_progress));
  out.finalize = TRY(fields.duration_or("finalize-limit", out.finalize));
  out.retries = static_cast<int>(TRY(fields.integer_or("retries", out.retries, 0, 1000)));
  out.mpi = TRY(choice(fields, "mpi", out.mpi, protocols));
  out.bind = TRY(fields.bool_or("bind", out.bind));
  out.memory = TRY(read_memory(fields));
  out.relay = TRY(enum_or(fields, "relay", out.relay, kRelayUses));
  out.check = TRY(enum_or(fields, "check", out.check, kCheckUses));
  out.bad_node_memory = TRY(fields.duration_or("bad-node-memory", out.bad_node_memory));
  out.metrics_file = TRY(fields.text_or("metrics-file", ""));
  out.wrap = TRY(read_wrap(fields));
  out.stage = TRY(fields.bool_or("stage", out.stage));
  out.ssh = TRY(read_ssh(TRY(section(fields, "ssh"))));
  TRY(fields.finish());
  if (out.start_timeout.count() <= 0)
    return yaml::error_at(*fields.find("start-timeout"), "launch.start-timeout must be longer than 0s");
  if (out.lost_after < Seconds(1))
    return yaml::error_at(*fields.find("lost-after"), "launch.lost-after must be 1s or more");
  return out;
}

}  // namespace dlrun::plan
