// The command line that starts an agent behind an ssh server, and the start of the agent's stream in what
// comes back. Pure. A login shell may print whatever it likes before it comes to our command: the command
// says a word that nobody else can know, and the stream begins behind it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun::launch {

// A word of the agent's start, new for each.
std::string new_stream_word();

// Runs the program `path` (any bytes but NUL) as an agent, the same under sh, csh and fish.
std::string remote_agent_command(std::string_view path, std::string_view word);

// The same where a copy may be needed. Behind the word it says which it is; then it reads the archive from
// its standard input, whose first line is the archive's size, and the stream begins.
std::string remote_agent_or_copy(std::string_view path, std::string_view word);
inline constexpr char kIsThere = 'h', kWantsCopy = 'c';

// `script` for the node's /bin/sh, whatever the login shell is. No single quotes in it.
std::string for_any_shell(std::string_view script);
// One word of such a script.
std::string script_word(std::string_view text);

class StreamStart {
 public:
  static constexpr std::size_t kMaxNoise = std::size_t{1} << 20;

  explicit StreamStart(std::string_view word);
  // Unset until the word has been received; then the bytes after it. An Error where more noise comes than any
  // shell's start files print.
  Result<std::optional<std::string>> add(std::string_view bytes);
  // The first lines before the word, cleaned of control characters.
  std::vector<std::string> noise() const;

 private:
  std::string mark_, seen_;
};

// The lines of a text that are worth showing: no blank ones, no control characters, not more than a few.
std::vector<std::string> shown_lines(std::string_view text);

}  // namespace dlrun::launch
