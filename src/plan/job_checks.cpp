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

// Whether the text is FILE:LINE:COLUMN.
bool is_place(std::string_view text) {
  int numbers = 0;
  for (std::size_t colon = text.rfind(':'); numbers < 2 && colon != text.npos && colon > 0;
       colon = text.rfind(':')) {
    const std::string_view number = text.substr(colon + 1);
    if (number.empty() || number.find_first_not_of("0123456789") != number.npos) return false;
    text = text.substr(0, colon);
    ++numbers;
  }
  return numbers == 2;
}

// Takes a message in our own form apart: "PLACE: what", lines that belong to it, "  hint: ...". What is in
// another form stays as it is.
Error taken_apart(ErrorKind kind, const std::string& text) {
  Error out{.kind = kind, .what = {}, .where = {}, .hint = {}, .also = {}};
  for (const std::string& line : split(text, '\n')) {
    if (out.what.empty()) {
      out.what = line;
    } else if (line.starts_with("  hint: ") && out.hint.empty()) {
      out.hint = line.substr(8);
    } else if (line.starts_with("  ") && out.hint.empty()) {
      out.also.push_back(line.substr(2));
    } else {
      return {.kind = kind, .what = text, .where = {}, .hint = {}, .also = {}};
    }
  }
  if (const std::size_t end = out.what.find(": ");
      end != out.what.npos && is_place(out.what.substr(0, end))) {
    out.where = out.what.substr(0, end);
    out.what = out.what.substr(end + 2);
  }
  return out;
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
  return taken_apart(kind_of_exit(code), text.empty() ? fmt::format("{}: {}", shown(checks, rules), status)
                                                      : without_prefix(text));
}

}  // namespace dlrun::plan
