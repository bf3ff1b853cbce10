#include "src/cli/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include "src/base/file.hpp"

namespace dlrun::cli {
namespace {

bool wants_color(const Environment& environment, ColorChoice choice, int fd) {
  if (choice != ColorChoice::automatic) return choice == ColorChoice::always;
  return ::isatty(fd) == 1 && environment.get("NO_COLOR").empty() && environment.get("TERM") != "dumb";
}

}  // namespace

Console::Console(const Environment& environment, ColorChoice color, Verbosity verbosity)
    : verbosity_(verbosity),
      color_out_(wants_color(environment, color, STDOUT_FILENO)),
      color_err_(wants_color(environment, color, STDERR_FILENO)),
      interactive_(::isatty(STDERR_FILENO) == 1 && environment.get("TERM") != "dumb" &&
                   verbosity != Verbosity::quiet) {}

Console::~Console() {
  clear_status_line();
}

// Whole lines in one write; a reader that went away (a closed pipe) is not our failure.
void Console::write(int fd, std::string_view text) {
  const std::string status = status_;
  clear_status_line();
  (void)write_all(fd, std::string(text) + "\n", "output");
  if (!status.empty()) status_line(status);
}

void Console::out(std::string_view text) {
  write(out_is_err_ ? STDERR_FILENO : STDOUT_FILENO, text);
}
void Console::err(std::string_view text) {
  write(STDERR_FILENO, text);
}
void Console::say(std::string_view text) {
  if (verbosity_ != Verbosity::quiet) err(text);
}
void Console::detail(std::string_view text) {
  if (verbosity_ == Verbosity::verbose) err(text);
}

void Console::data(std::string_view text) {
  (void)write_all(STDOUT_FILENO, text, "output");
}

void Console::status_line(std::string_view text) {
  if (!interactive_) return;
  (void)write_all(STDERR_FILENO, "\r" + std::string(text) + "\033[K", "terminal");
  status_ = text;
}

void Console::clear_status_line() {
  if (status_.empty()) return;
  (void)write_all(STDERR_FILENO, "\r\033[K", "terminal");
  status_.clear();
}

int Console::width() const {
  winsize size{};
  constexpr int usual = 80;
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

std::string Console::tinted(std::string_view text, Tint tint, bool color) {
  if (!color || tint == Tint::plain) return std::string(text);
  static constexpr std::string_view codes[] = {"", "1", "2", "31", "32", "33", "34", "35", "36"};
  return "\033[" + std::string(codes[static_cast<int>(tint)]) + "m" + std::string(text) + "\033[0m";
}

}  // namespace dlrun::cli
