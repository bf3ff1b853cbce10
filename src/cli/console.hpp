// Console: writes text for people, with colours and a redrawn line on a terminal, as plain text into pipes.
// Rank output goes to stdout and dlrun's own messages go to stderr, so that the output can be piped alone.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun::cli {

class FileOutput;
enum class ColorChoice { automatic, always, never };
enum class Verbosity { quiet, normal, verbose };
enum class Tint { plain, bold, dim, red, green, yellow, blue, magenta, cyan };

class Console {
 public:
  Console(const Environment& environment, ColorChoice color, Verbosity verbosity);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void out(std::string_view text);     // data and rank output: stdout, a line
  void err(std::string_view text);     // stderr, a line
  void say(std::string_view text);     // dlrun's messages: stderr, not with --quiet
  void detail(std::string_view text);  // stderr, only with --verbose
  // A line as by out() and err(), which is written with those behind it: by flush(), by any other text, or
  // where they are many. One system call serves many lines of ranks.
  void gather_out(std::string_view text);
  void gather_err(std::string_view text);
  void flush();
  // Machine-readable text, with its own newlines: always stdout. An Error if it cannot be written.
  Result<void> data(std::string_view text);
  void send_out_to_err() { flush(), out_is_err_ = true; }  // stdout is kept for JSON
  // What is written to a standard output that was closed is not lost: it is elsewhere too.
  void accept_closed_out() { closed_out_is_fine_ = true; }

  // Redraws the line at the bottom of the terminal, cut to its width, with control characters as text; has no
  // effect if stderr is not a terminal.
  void status_line(std::string_view text);
  // The same with several lines; where the terminal has not so many, only the last one is shown.
  void status_lines(std::span<const std::string> lines);
  void clear_status_line();
  // From now on, text that its reader does not accept at once is dropped. Callable from any thread.
  void stop_waiting_for_readers() { stop_seen_ = true; }
  // Why text for people was lost although its reader is there, such as a full disk; empty: none was lost.
  // Waits for files.
  std::string lost();
  // The same for standard output alone.
  std::string lost_out();
  // Whether text for standard output goes nowhere, as its reader went away or its disk is full: whoever would
  // write for ever ends.
  bool out_is_gone() const;
  bool shows_out_on_terminal() const;
  bool shows_err_on_terminal() const { return err_is_terminal_; }
  bool interactive() const { return interactive_; }
  int width() const;
  int height() const;

  std::string tinted_out(std::string_view text, Tint tint) const { return tinted(text, tint, color_out_); }
  std::string tinted_err(std::string_view text, Tint tint) const { return tinted(text, tint, color_err_); }

 private:
  static std::string tinted(std::string_view text, Tint tint, bool color);
  void write(int fd, std::string_view text);
  void write_lines(int fd, std::string_view lines);
  void gather(int fd, std::string_view text);
  void put(int fd, std::string_view text);
  bool may_wait();  // false: a stop was asked for

  Verbosity verbosity_;
  bool color_out_ = false, color_err_ = false, interactive_ = false, out_is_err_ = false;
  bool out_is_gone_ = false, closed_out_is_fine_ = false;
  bool out_is_terminal_ = false, err_is_terminal_ = false;
  std::vector<std::string> status_;  // as drawn
  std::string gathered_;             // whole lines that are not written yet
  int gathered_for_ = -1;
  std::string lost_out_, lost_err_;
  std::shared_ptr<FileOutput> out_file_;  // none: no regular file
  std::shared_ptr<FileOutput> err_file_;  // the same where both are one file
  bool dropping_ = false;                 // the last text was dropped: the next one is not waited for
  std::atomic<bool> stop_seen_ = false;   // a stop was asked for, or its signal is pending
};

}  // namespace dlrun::cli
