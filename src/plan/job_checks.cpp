#include "src/plan/job_checks.hpp"

#include "src/base/exit_code.hpp"
#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "src/plan/secret_words.hpp"

namespace dlrun::plan {
namespace {

// A program's own message without its name and the word that we put before it again.
std::string without_prefix(std::string_view text) {
  if (const std::size_t at = text.find("error: "); at != std::string_view::npos && at < 40)
    text.remove_prefix(at + 7);
  return std::string(text);
}

ErrorKind kind_of_exit(int code) {
  for (const ErrorKind kind :
       {ErrorKind::usage, ErrorKind::input, ErrorKind::allocation, ErrorKind::unavailable, ErrorKind::io})
    if (to_int(exit_code(kind)) == code) return kind;
  return ErrorKind::input;
}

std::string shown(const std::vector<Argv>& checks, const EnvironmentRules& rules) {
  std::vector<std::string> out;
  for (const Argv& check : checks) out.push_back(shell_join(without_secret_values(check, rules.secrets)));
  return join(out, ", ");
}

}  // namespace

Error check_error(const std::vector<Argv>& checks, const EnvironmentRules& rules, std::string_view said,
                  std::string_view status, int code) {
  const std::string text(trim(said));
  return {.kind = kind_of_exit(code),
          .what = text.empty() ? fmt::format("{}: {}", shown(checks, rules), status) : without_prefix(text),
          .where = {},
          .hint = {},
          .also = {}};
}

}  // namespace dlrun::plan
