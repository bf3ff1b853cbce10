#include "src/cli/cmd_complete.hpp"

#include "schedulers/scheduler.hpp"
#include "src/base/strings.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/usage_error.hpp"

namespace dlrun::cli {
namespace {

std::string field(std::string_view text) {
  return text.empty() ? "-" : std::string(text);
}

// "-q" of "-q,--quiet"
std::string_view short_name(const Flag& flag) {
  return flag.name.starts_with("--") ? std::string_view() : flag.name.substr(0, flag.name.find(','));
}

std::string scheduler_names(const CommandRow& row) {
  std::vector<std::string> out;
  for (const Scheduler& scheduler : all_schedulers())
    if (scheduler.name != "hostfile" && (row.name != "submit" || scheduler.submission != nullptr))
      out.emplace_back(scheduler.name);
  return join(out, " ");
}

// The names of schedulers and launchers are those of the table of schedulers.
std::string choices_of(const Flag& flag, const CommandRow& row) {
  if (flag.value == "SCHEDULER") return scheduler_names(row);
  if (flag.value == "LAUNCHER") return "auto " + join(launcher_names(), " ");
  return field(flag.choices);
}

// long name, short name, value, choices, whether it may be repeated, help
std::string line_of(const BoundFlag& bound, const CommandRow& row) {
  const Flag& flag = bound.flag;
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", flag.long_name(), field(short_name(flag)), field(flag.value),
                     choices_of(flag, row), bound.repeated ? "many" : "once", flag.help);
}

std::string flags_of(const CommandRow& row) {
  Arguments takes;
  CommonOptions common;
  const std::unique_ptr<Command> command = row.make();
  command->add(takes);
  takes.flags(common_flags(), common);
  std::string out;
  for (const BoundFlag& bound : takes.flags()) out += line_of(bound, row);
  return out + line_of({.flag = {.name = "-h,--help", .help = "print help with examples"}}, row);
}

std::string all_commands() {
  std::string out;
  for (const CommandRow& row : commands())
    if (row.audience == Audience::people) out += fmt::format("{}\t{}\n", row.name, row.summary);
  return out;
}

}  // namespace

Result<int> CompleteCommand::run(const Context& context) {
  const CommandRow* row = find_command(name);
  if (!name.empty() && row == nullptr)
    return fail(usage_error("", fmt::format("unknown command '{}'", name)));
  TRY(context.console.data(row == nullptr ? all_commands() : flags_of(*row)));
  return 0;
}

}  // namespace dlrun::cli
