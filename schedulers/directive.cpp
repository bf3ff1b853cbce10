#include "schedulers/directive.hpp"

#include <algorithm>
#include <cctype>

namespace dlrun {
namespace {

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_./:=+@%,-").find(c) != std::string_view::npos;
}

tl::unexpected<Error> unsayable(std::string_view key, std::string_view value, std::string hint) {
  std::string shown(value.substr(0, 80));
  std::replace_if(shown.begin(), shown.end(), is_control, '?');
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("{}: '{}' is not valid in a scheduler's directive", key, shown),
                    .where = {},
                    .hint = std::move(hint),
                    .also = {}});
}

}  // namespace

Result<std::string> directive_word(std::string_view value, std::string_view key) {
  const bool broken =
      std::any_of(value.begin(), value.end(), [](char c) { return is_control(c) || c == '"' || c == '\\'; });
  if (value.empty() || broken)
    return unsayable(key, value, "use a text without quotes, backslashes and line breaks");
  if (std::all_of(value.begin(), value.end(), is_plain)) return std::string(value);
  return fmt::format("\"{}\"", value);
}

Result<std::vector<Directive>> extra_directives(const SubmissionRequest& request, std::string_view marker) {
  std::vector<Directive> out;
  for (const std::string& line : request.extra) {
    const std::string_view option = trim(line);
    const bool one_line = std::none_of(line.begin(), line.end(), is_control);
    if (!option.starts_with('-') || !one_line)
      return unsayable(
          "resources.extra", line,
          fmt::format("write each as the option alone, without {}: [\"--reservation=week\"]", trim(marker)));
    out.push_back({fmt::format("{} {}", marker, option), "resources.extra", {}});
  }
  return out;
}

std::optional<std::string> option_value(std::string_view text, std::string_view name) {
  const std::vector<std::string> words = split(text, ' ');
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with(name)) continue;
    std::string_view rest = std::string_view(words[i]).substr(name.size());
    const bool attached = !name.starts_with("--") && !rest.empty() && is_digit(rest.front());
    if (!rest.empty() && rest.front() != '=' && !attached) continue;
    if (rest.starts_with('=')) rest.remove_prefix(1);
    if (rest.empty() && i + 1 < words.size()) rest = words[i + 1];
    if (rest.size() > 1 && rest.front() == '"' && rest.back() == '"') rest = rest.substr(1, rest.size() - 2);
    return std::string(rest);
  }
  return std::nullopt;
}

std::string scheduler_job_name(std::string_view name, std::size_t longest, FirstCharacter first) {
  std::string out(name);
  if (first == FirstCharacter::letter && !out.empty() &&
      std::isalpha(static_cast<unsigned char>(out.front())) == 0)
    out = "j" + out;
  if (out.size() <= longest) return out;
  const std::size_t dot = out.rfind('.');
  const bool index = dot != out.npos && out.size() - dot < longest && dot + 1 < out.size() &&
                     out.find_first_not_of("0123456789", dot + 1) == out.npos;
  const std::string end = index ? out.substr(dot) : std::string();
  return out.substr(0, longest - end.size()) + end;
}

std::string mail_letters(const std::vector<std::string>& events, std::span<const MailLetter> letters) {
  std::string out;
  for (const MailLetter& one : letters)
    if (std::find(events.begin(), events.end(), one.event) != events.end()) out += one.letter;
  return out;
}

std::string mebibytes(std::uint64_t bytes) {
  constexpr std::uint64_t mebi = 1 << 20;
  return std::to_string(bytes / mebi + (bytes % mebi != 0 ? 1 : 0));
}

std::string clock_text(std::chrono::seconds time) {
  const auto all = time.count();
  return fmt::format("{}:{:02}:{:02}", all / 3600, all / 60 % 60, all % 60);
}

void DirectiveList::add(std::string_view option, std::string_view key) {
  lines_.push_back({fmt::format("{} {}", marker_, option), std::string(key), {}});
}

Result<void> DirectiveList::add_word(std::string_view option, std::string_view value, std::string_view key) {
  if (value.empty()) return {};
  add(std::string(option) + TRY(directive_word(value, key)), key);
  return {};
}

Result<std::vector<Directive>> DirectiveList::with_extra(const SubmissionRequest& request,
                                                         const OptionTable& table) && {
  return replace_directives(std::move(lines_), TRY(extra_directives(request, marker_)), marker_, table);
}

}  // namespace dlrun
