// Quoting for the target a value is written into. Everything that users type goes through one of these.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace dlrun {

// One word for bash: bare where it is harmless, else in single quotes. Newlines survive; NUL cannot occur in
// argv.
std::string shell_quote(std::string_view word);
// The words of a command, quoted and joined by blanks.
std::string shell_join(std::span<const std::string> words);
// The same on one line, whatever the words hold: line breaks are spelled $'\\n'. For scripts in which a line
// of its own may be read by somebody else, as a scheduler reads its directives.
std::string shell_line(std::span<const std::string> words);
// True for a name that bash can export: a letter or underscore, then letters, digits, underscores.
bool is_shell_identifier(std::string_view name);

}  // namespace dlrun
