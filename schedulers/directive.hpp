// Words inside a directive line. The directive languages agree on little: bare words of harmless characters,
// and double quotes around blanks. So these are the only two forms that are written, and what needs more is
// refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/option_table.hpp"
#include "schedulers/submission.hpp"

namespace dlrun {

// `value` as one word of a directive; `key` is what the Error names.
Result<std::string> directive_word(std::string_view value, std::string_view key);

// resources.extra as directives: an option a line, marker and line breaks refused.
Result<std::vector<Directive>> extra_directives(const SubmissionRequest& request, std::string_view marker);

// What a directive's text gives an option, where it has it: "1-9" of "-a 1-9" and "-a1-9" for "-a", of
// "--array=1-9" and "--array 1-9" for "--array". Quotes around it are left out.
std::optional<std::string> option_value(std::string_view text, std::string_view name);

// A job's name for a scheduler that takes so many characters, and maybe only a letter first. The index of an
// array's element at its end (".7") is not what is cut off.
enum class FirstCharacter { any, letter };
std::string scheduler_job_name(std::string_view name, std::size_t longest, FirstCharacter first);

// One of the letters for each event, in the letters' order: {"fail", "end"} is "ae".
struct MailLetter {
  std::string_view event;
  char letter;
};
std::string mail_letters(const std::vector<std::string>& events, std::span<const MailLetter> letters);

std::string mebibytes(std::uint64_t bytes);  // rounded up, without a unit

// "8:00:00", with as many hours as it takes.
std::string clock_text(std::chrono::seconds time);

// Adds lines "MARKER option", the way most schedulers' files build theirs.
class DirectiveList {
 public:
  explicit DirectiveList(std::string_view marker) : marker_(marker) {}
  void add(std::string_view option, std::string_view key = {});
  // Adds `option` and the value as one word; adds no directive if the value is empty.
  Result<void> add_word(std::string_view option, std::string_view value, std::string_view key);
  // Adds the user's directives, which replace those of dlrun that set the same.
  Result<std::vector<Directive>> with_extra(const SubmissionRequest& request, const OptionTable& table) &&;

 private:
  std::string marker_;
  std::vector<Directive> lines_;
};

// The last line of `printed` that `shape` matches as a whole; empty if none does.
template <class Shape>
std::string last_line_of_shape(std::string_view printed, Shape shape);

}  // namespace dlrun

#include "src/base/strings.hpp"

template <class Shape>
std::string dlrun::last_line_of_shape(std::string_view printed, Shape shape) {
  std::string found;
  for (const std::string& line : split(printed, '\n'))
    if (std::string id = shape(trim(line)); !id.empty()) found = std::move(id);
  return found;
}
