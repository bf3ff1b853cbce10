#include "src/agent/prolog.hpp"

#include <algorithm>

#include "src/agent/prolog_limits.hpp"
#include "src/base/file.hpp"
#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/plan/job_checks.hpp"
#include "src/plan/run_directory.hpp"
#include "src/plan/secret_words.hpp"
#include "src/plan/secrets.hpp"

namespace dlrun::agent {
namespace {

std::vector<std::string> last_lines(const std::string& path, std::size_t count) {
  const auto text = read_file(path);
  std::vector<std::string> lines = split(trim(text ? *text : std::string()), '\n');
  if (lines.size() > count) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(count));
  return lines;
}

// What the node script says at its end: "exit code 3 from environment.setup[0]: exit 3".
std::string take_verdict(std::vector<std::string>& lines, const std::string& host) {
  const std::string start = fmt::format("dlrun: {}: ", host);
  if (lines.empty() || !lines.back().starts_with(start)) return {};
  std::string out = lines.back().substr(start.size());
  lines.pop_back();
  return out;
}

}  // namespace

namespace {

constexpr std::int64_t kMaxNodes = 1'000'000;

// Shell lines for the job's checks where these run here: their output apart, so that an error can show it.
std::string check_lines(const plan::NodeSlice& slice) {
  if (slice.node.get() != 0 || !plan::checks_need_setup(slice.plan)) return {};
  std::vector<std::string> commands;
  for (const Argv& check : slice.plan.checks) commands.push_back(shell_line(check));
  return "\n{ " + join(commands, " && ") + "; } > \"$dlrun_result.checks\" 2>&1";
}

// With an agent per rank (launch.mpi: native), the plan at hand has a node per rank; scripts are the real
// nodes'.
std::string script_path(const plan::NodeSlice& slice) {
  plan::NodePlan node = slice.plan.nodes.at(static_cast<std::size_t>(slice.node.get()));
  if (slice.plan.mpi == plan::MpiProtocol::native && !slice.plan.ranks.empty()) {
    const auto& place = slice.plan.ranks.front().environment;
    const auto real = place.find("DLRUN_NODE");
    const auto index = real == place.end() ? 0 : parse_integer(real->second, 0, kMaxNodes).value_or(0);
    node.index = NodeIndex(static_cast<int>(index));
  }
  return slice.plan.run_directory + "/" + plan::node_script_name(node);
}

std::filesystem::path checks_output(const std::filesystem::path& environment_file) {
  return environment_file.string() + ".checks";
}

}  // namespace

Argv prolog_command(const plan::NodeSlice& slice, const std::filesystem::path& environment_file) {
  return {"bash", "-c",
          // By names: a setup line may set the arguments, and bash keeps what a sourced file sets.
          "dlrun_source=$1 dlrun_result=$2; source \"$dlrun_source\" prolog || exit; " +
              write_limits_line("\"$dlrun_result\"") + "; env -0 > \"$dlrun_result\" || exit" +
              check_lines(slice),
          "dlrun-prolog", script_path(slice), environment_file.string()};
}

Result<Environment> prolog_environment(const plan::NodeSlice& slice, const ExitStatus& status,
                                       const std::filesystem::path& environment_file,
                                       const std::string& log_path) {
  constexpr std::size_t shown = 12;
  std::error_code problem;
  if (std::filesystem::exists(checks_output(environment_file), problem) && !status.success())
    return fail(plan::check_error(slice.plan.checks, slice.plan.environment_rules,
                                  TRY(read_file(checks_output(environment_file))), status.text(),
                                  status.code()));
  const std::string host = slice.plan.nodes.at(static_cast<std::size_t>(slice.node.get())).host.get();
  if (!status.success()) {
    std::vector<std::string> lines = last_lines(log_path, shown);
    for (std::string& line : lines)  // set -x shows them
      line = plan::without_secret_values(line, slice.plan.environment_rules.secrets);
    const std::string verdict = take_verdict(lines, host);
    return fail(Error{.kind = ErrorKind::unavailable,
                      .what = fmt::format("the job's environment cannot be set up: {}",
                                          verdict.empty() ? status.text() : verdict),
                      .where = host,
                      .hint = fmt::format("its whole output is in {}", log_path),
                      .also = std::move(lines)});
  }
  if (!std::filesystem::exists(environment_file, problem))
    return fail(Error{.kind = ErrorKind::unavailable,
                      .what = "a line of environment.setup ended the shell before the environment was ready",
                      .where = host,
                      .hint = "take exit and exec out of the setup lines",
                      .also = plan::without_secrets(slice.plan).prolog.setup});
  // NULs between the entries keep values with newlines whole.
  return Environment::from_entries(split(TRY(read_file(environment_file)), '\0'));
}

}  // namespace dlrun::agent
