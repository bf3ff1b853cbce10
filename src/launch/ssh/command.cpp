#include "src/launch/ssh/command.hpp"

#include "src/base/strings.hpp"
#include "src/base/token.hpp"
#include "src/launch/stage.hpp"

namespace dlrun::launch {
namespace {

constexpr std::string_view kMark =
    "dlrun-stream-";  // in two pieces on the command line: an echo of it is none
constexpr std::size_t kMaxShownLines = 6, kMaxShownLine = 200;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("/._-+=:,@%").find(c) != std::string_view::npos;
}

}  // namespace

std::string new_stream_word() {
  return random_challenge().substr(0, 16);
}

// printf's octal numbers mean the same to all shells, which quotes inside of quotes do not. The dot keeps
// newlines at the end.
std::string script_word(std::string_view text) {
  bool plain = !text.empty();
  for (const char c : text) plain = plain && is_plain(c);
  if (plain) return std::string(text);
  std::string octal;
  for (const char c : text)
    octal += fmt::format("\\{:03o}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  return fmt::format("\"$(printf \"{}\")\"", octal);
}

std::string for_any_shell(std::string_view script) {
  return fmt::format("exec /bin/sh -c '{}'", script);
}

std::string remote_agent_command(std::string_view path, std::string_view word) {
  return for_any_shell(fmt::format("printf %s%s {} {}; exec {}", kMark, word, script_word(path)));
}

std::string remote_agent_or_copy(std::string_view path, std::string_view word) {
  const auto say = [&](char what) { return fmt::format("printf %s%s%s {} {} {}", kMark, word, what); };
  return for_any_shell(fmt::format("p={}; if [ -x \"$p\" ]; then {}; exec \"$p\"; fi; {}; {}",
                                   script_word(path), say(kIsThere), say(kWantsCopy),
                                   run_copy("{ read -r n && head -c \"$n\"; }", "")));
}

StreamStart::StreamStart(std::string_view word) : mark_(std::string(kMark) + std::string(word)) {}

Result<std::optional<std::string>> StreamStart::add(std::string_view bytes) {
  const std::size_t from = seen_.size() < mark_.size() ? 0 : seen_.size() - mark_.size();
  seen_.append(bytes);
  const std::size_t at = seen_.find(mark_, from);
  if (at == std::string::npos) {
    if (seen_.size() <= kMaxNoise) return std::nullopt;
    return fail(
        {.kind = ErrorKind::unavailable,
         .what = fmt::format("its login shell printed more than {} bytes and did not reach the dlrun command",
                             kMaxNoise),
         .hint = "the start files of a shell should print only on a terminal"});
  }
  std::string rest = seen_.substr(at + mark_.size());
  seen_.resize(at);
  return rest;
}

std::vector<std::string> StreamStart::noise() const {
  return shown_lines(seen_);
}

std::vector<std::string> shown_lines(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string& line : split(text, '\n')) {
    std::string clean;
    for (std::size_t i = 0; i < line.size() && clean.size() < kMaxShownLine; ++i) {
      const auto c = static_cast<unsigned char>(line[i]);
      if (c == 0x1b && i + 1 < line.size() && line[i + 1] == '[')  // colours and the like, whole
        while (i + 1 < line.size() && !(line[i] >= '@' && line[i] <= '~' && line[i] != '[')) ++i;
      else if (c >= 0x20 && c != 0x7f)
        clean += line[i];
    }
    if (trim(clean).empty()) continue;
    if (out.size() == kMaxShownLines) {
      out.emplace_back("...");
      break;
    }
    out.emplace_back(trim(clean));
  }
  return out;
}

}  // namespace dlrun::launch
