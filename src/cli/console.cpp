#include "src/cli/console.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/cli/file_output.hpp"
#include "src/cli/terminal_text.hpp"

namespace dlrun::cli {
namespace {

bool wants_color(const Environment& environment, ColorChoice choice, int fd) {
  if (choice != ColorChoice::automatic) return choice == ColorChoice::always;
  return ::isatty(fd) == 1 && environment.get("NO_COLOR").empty() && environment.get("TERM") != "dumb";
}

bool stop_is_pending() {
  sigset_t pending;
  if (::sigpending(&pending) != 0) return false;
  return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
         sigismember(&pending, SIGHUP) == 1 || sigismember(&pending, SIGQUIT) == 1;
}

// The bytes of the first line, with its end.
std::size_t first_line(std::string_view text) {
  return std::min(text.find('\n'), text.size() - 1) + 1;
}

// The bytes of as many lines as fit in a piece; of a longer one, a piece.
std::size_t whole_lines(std::string_view text, std::size_t piece) {
  if (text.size() <= piece) return text.size();
  const std::size_t end = text.rfind('\n', piece - 1);
  return end == std::string_view::npos ? piece : end + 1;
}

}  // namespace

Console::Console(const Environment& environment, ColorChoice color, Verbosity verbosity)
    : verbosity_(verbosity),
      color_out_(wants_color(environment, color, STDOUT_FILENO)),
      color_err_(wants_color(environment, color, STDERR_FILENO)),
      interactive_(::isatty(STDERR_FILENO) == 1 && environment.get("TERM") != "dumb" &&
                   verbosity != Verbosity::quiet),
      out_is_terminal_(::isatty(STDOUT_FILENO) == 1),
      err_is_terminal_(::isatty(STDERR_FILENO) == 1) {
  if (FileOutput::takes(STDOUT_FILENO)) out_file_ = std::make_shared<FileOutput>();
  if (FileOutput::takes(STDERR_FILENO))
    err_file_ = out_file_ && FileOutput::are_one_file(STDOUT_FILENO, STDERR_FILENO)
                    ? out_file_
                    : std::make_shared<FileOutput>();
}

Console::~Console() {
  flush();
  clear_status_line();
}

// Writes for people wait for a slow reader (a pager, Ctrl-S), but not past a request to stop: signals are
// blocked, and are pending where no event loop reads them now. Once one is seen, what nobody takes within a
// moment is dropped; it is in the logs. A reader that went away is not our failure. A file's text is never
// dropped: past a request to stop its queue grows.
void Console::put(int fd, std::string_view text) {
  FileOutput* file = (fd == STDOUT_FILENO ? out_file_ : err_file_).get();
  if (fd == STDOUT_FILENO && out_is_gone_) return;
  if (file != nullptr) return file->put(fd, text, [this] { return may_wait(); });
  constexpr std::size_t piece = 4096;  // PIPE_BUF: poll says whether that much can be written without waiting
  constexpr int moment_ms = 100;
  while (!text.empty()) {
    pollfd ready{fd, POLLOUT, 0};
    const int count = ::poll(&ready, 1, dropping_ ? 0 : moment_ms);
    if (count == 0) {
      dropping_ = !may_wait();
      if (dropping_) text.remove_prefix(first_line(text));
      continue;
    }
    const ssize_t put = ::write(fd, text.data(), whole_lines(text, piece));
    if (put < 0 && errno != EINTR && errno != EAGAIN) {
      std::string& lost = fd == STDOUT_FILENO ? lost_out_ : lost_err_;
      const bool is_fine = errno == EPIPE || (errno == EBADF && closed_out_is_fine_);
      if (!is_fine && lost.empty()) lost = system_reason(errno);
      if (fd == STDOUT_FILENO) out_is_gone_ = true;
      return;
    }
    dropping_ = false;
    if (put > 0) text.remove_prefix(static_cast<std::size_t>(put));
  }
}

// Of a pipe without a reader the kernel tells before anything is written.
bool Console::out_is_gone() const {
  pollfd out{STDOUT_FILENO, 0, 0};
  return out_is_gone_ || (!out_is_err_ && ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0);
}

bool Console::may_wait() {
  if (stop_is_pending()) stop_seen_ = true;
  return !stop_seen_;
}

std::string Console::lost_out() {
  flush();
  if (out_file_) out_file_->finish();
  return lost_out_.empty() && out_file_ ? out_file_->lost() : lost_out_;
}

std::string Console::lost() {
  flush();
  if (err_file_) err_file_->finish();
  if (std::string out = lost_out(); !out.empty()) return out;
  return lost_err_.empty() && err_file_ ? err_file_->lost() : lost_err_;
}

void Console::write(int fd, std::string_view text) {
  flush();
  write_lines(fd, std::string(text) + "\n");
}

void Console::write_lines(int fd, std::string_view lines) {
  const std::vector<std::string> status = status_;
  clear_status_line();
  put(fd, lines);
  if (!status.empty()) status_lines(status);
}

void Console::gather(int fd, std::string_view text) {
  constexpr std::size_t many = std::size_t{64} << 10;
  if (fd != gathered_for_) flush();
  gathered_for_ = fd;
  gathered_.append(text).push_back('\n');
  if (gathered_.size() >= many) flush();
}

void Console::gather_out(std::string_view text) {
  gather(out_is_err_ ? STDERR_FILENO : STDOUT_FILENO, text);
}
void Console::gather_err(std::string_view text) {
  gather(STDERR_FILENO, text);
}

void Console::flush() {
  if (!gathered_.empty()) write_lines(gathered_for_, std::exchange(gathered_, {}));
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

Result<void> Console::data(std::string_view text) {
  flush();
  if (out_file_) out_file_->finish();  // what was said before stands before it
  return write_all(STDOUT_FILENO, text, "the standard output");
}

void Console::status_line(std::string_view text) {
  const std::string line(text);
  status_lines(std::span(&line, 1));
}

// The cursor rests at the beginning of the first line: a terminal that is made narrower may break a line in
// two, and both halves are then behind the cursor.
void Console::status_lines(std::span<const std::string> lines) {
  if (!interactive_ || lines.empty()) return;
  const bool fits = lines.size() < static_cast<std::size_t>(height());
  std::vector<std::string> drawn;
  for (const std::string& line : fits ? lines : lines.last(1))
    drawn.push_back(fitted(plain_text(line), width() - 1));
  const std::string text = "\r\033[J" + join(drawn, "\r\n");
  put(STDERR_FILENO, text + (fits && lines.size() > 1 ? fmt::format("\033[{}A\r", lines.size() - 1) : "\r"));
  status_.assign(lines.begin(), lines.end());
}

void Console::clear_status_line() {
  if (status_.empty()) return;
  put(STDERR_FILENO, "\r\033[J");
  status_.clear();
}

bool Console::shows_out_on_terminal() const {
  return out_is_err_ ? err_is_terminal_ : out_is_terminal_;
}

int Console::width() const {
  winsize size{};
  constexpr int usual = 80;
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

int Console::height() const {
  winsize size{};
  constexpr int usual = 24;
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : usual;
}

std::string Console::tinted(std::string_view text, Tint tint, bool color) {
  if (!color || tint == Tint::plain) return std::string(text);
  static constexpr std::string_view codes[] = {"", "1", "2", "31", "32", "33", "34", "35", "36"};
  return "\033[" + std::string(codes[static_cast<int>(tint)]) + "m" + std::string(text) + "\033[0m";
}

}  // namespace dlrun::cli
