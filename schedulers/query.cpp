#include "schedulers/query.hpp"

#include <ctime>

#include "src/base/strings.hpp"

namespace dlrun {

Environment query_environment(Environment environment) {
  environment.set("TZ", "UTC0");
  environment.set("LC_ALL", "C");
  environment.unset("SLURM_TIME_FORMAT");
  return environment;
}

Result<std::string> ask_scheduler(const DiscoveryContext& context, const Argv& argv) {
  const Command command{
      .argv = argv, .environment = query_environment(context.environment), .limit = kQueryLimit};
  const CommandOutput output = TRY(context.commands.run(command));
  if (output.status.success()) return output.out;
  const std::string_view said = trim(output.err.empty() ? output.out : output.err);
  return fail(ErrorKind::allocation, "{} failed: {}", argv.front(), said.substr(0, said.find('\n')));
}

std::optional<Instant> parse_calendar(const std::string& text, const char* format) {
  std::tm parts{};
  const char* end = ::strptime(text.c_str(), format, &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return Instant(std::chrono::seconds(::timegm(&parts)));
}

}  // namespace dlrun
