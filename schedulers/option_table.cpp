#include "schedulers/option_table.hpp"

#include <algorithm>
#include <map>

#include "src/base/strings.hpp"

namespace dlrun {
namespace {

// Blanks separate words, but not between double quotes, which are left out.
std::vector<std::string> option_words(std::string_view line) {
  std::vector<std::string> out;
  bool quoted = false, open = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
      if (!open) out.emplace_back(), open = true;
    } else if (!quoted && (c == ' ' || c == '\t')) {
      open = false;
    } else {
      if (!open) out.emplace_back(), open = true;
      out.back() += c;
    }
  }
  return out;
}

struct Match {
  std::string_view subject;
  std::string value;
  bool value_follows = false;  // it is the next word
};

bool is_long(std::string_view name) {
  return name.starts_with("--");
}

bool matches_name(std::string_view given, std::string_view name, OptionTable::Style style) {
  constexpr std::size_t shortest = 5;  // "--nod": shorter beginnings are rarely clear
  const bool beginning = style == OptionTable::Style::getopt && is_long(name) && given.size() >= shortest;
  return given == name || (beginning && name.starts_with(given));
}

// The option that a word is; the whole name goes before a beginning.
std::optional<Match> match(std::string_view word, const OptionTable& table) {
  const std::size_t equals = is_long(word) ? word.find('=') : word.npos;
  const std::string_view given = word.substr(0, equals);
  const std::string value(equals == word.npos ? "" : word.substr(equals + 1));
  for (const auto style : {OptionTable::Style::exact, table.style})
    for (const OptionNames& option : table.options)
      for (const std::string_view name : option.names)
        if (matches_name(given, name, style)) return Match{option.subject, value, equals == word.npos};
  if (table.style == OptionTable::Style::exact || is_long(word)) return std::nullopt;
  for (const OptionNames& option : table.options)
    for (const std::string_view name : option.names)
      if (name.size() == 2 && word.starts_with(name))
        return Match{option.subject, std::string(word.substr(2))};
  return std::nullopt;
}

std::string option_text(const Directive& line, std::string_view marker) {
  return std::string(trim(std::string_view(line.text).substr(marker.size())));
}

}  // namespace

std::vector<std::string> OptionTable::subjects(std::string_view line) const {
  std::vector<std::string> out;
  const std::vector<std::string> words = option_words(line);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with('-')) continue;
    auto found = match(words[i], *this);
    if (!found) continue;
    if (found->value_follows && i + 1 < words.size()) found->value = words[i + 1];
    if (parts == nullptr) {
      out.emplace_back(found->subject);
      continue;
    }
    for (std::string& part : parts(found->subject, found->value)) out.push_back(std::move(part));
  }
  return out;
}

std::vector<std::string> resource_parts(std::string_view subject, std::string_view value) {
  if (subject != "-l") return {std::string(subject)};
  std::vector<std::string> out;
  for (const std::string& resource : split(value, ','))
    out.push_back(fmt::format("-l {}", trim(resource.substr(0, resource.find('=')))));
  return out;
}

Result<std::vector<Directive>> replace_directives(std::vector<Directive> ours, std::vector<Directive> theirs,
                                                  std::string_view marker, const OptionTable& table) {
  std::map<std::string, std::string> said;
  for (const Directive& line : theirs)
    for (const std::string& subject : table.subjects(option_text(line, marker)))
      if (const auto [first, added] = said.try_emplace(subject, line.text); !added)
        return fail(Error{.kind = ErrorKind::input,
                          .what = fmt::format("resources.extra sets {} twice: '{}' and '{}'", subject,
                                              first->second, line.text),
                          .where = {},
                          .hint = "keep one of them: the scheduler would silently use one"});
  std::erase_if(ours, [&](const Directive& line) {
    const std::vector<std::string> subjects = table.subjects(option_text(line, marker));
    return std::any_of(subjects.begin(), subjects.end(),
                       [&](const std::string& subject) { return said.contains(subject); });
  });
  for (Directive& line : theirs) ours.push_back(std::move(line));
  return ours;
}

}  // namespace dlrun
