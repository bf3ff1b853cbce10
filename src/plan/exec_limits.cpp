#include "src/plan/exec_limits.hpp"

namespace dlrun::plan {
namespace {

Result<void> check_length(std::size_t bytes, const std::string& what, std::string_view whose) {
  if (bytes < kMaxString) return {};
  return fail(
      Error{.kind = ErrorKind::input,
            .what = fmt::format("{} of {} has {} bytes, and the system passes at most {} to a program", what,
                                whose, bytes, kMaxString - 1),
            .hint = "pass long lists in a file"});
}

}  // namespace

Result<void> check_lengths(const EnvironmentChanges& variables, std::string_view whose) {
  for (const auto& [name, value] : variables)
    TRY(check_length(name.size() + 1 + value.size(), "variable " + name, whose));
  return {};
}

Result<void> check_lengths(const Argv& argv, std::string_view whose) {
  for (std::size_t i = 0; i < argv.size(); ++i)
    TRY(check_length(argv[i].size(), fmt::format("word {} of the command", i + 1), whose));
  return {};
}

}  // namespace dlrun::plan
