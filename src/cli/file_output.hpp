// FileOutput: writes the console's text into a regular file. The output of a batch job is on a shared file
// system, which may accept no write for minutes: a thread writes, in the order of the calls, while the event
// loop sends its heartbeats. It drops nothing: a full queue makes its caller wait, and finish() waits for the
// file.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "src/process/file_writer.hpp"

namespace dlrun::cli {

class FileOutput {
 public:
  static constexpr std::size_t kMaxQueued = std::size_t{16} << 20;
  // Writes all of the text; its Error has only the reason.
  using Sink = std::function<Result<void>(int fd, std::string_view text)>;
  // Called about ten times per second while the queue is full; false: wait no longer.
  using Waiting = std::function<bool()>;

  static bool takes(int fd);
  static bool are_one_file(int one, int other);
  static Result<void> write_to_file(int fd, std::string_view text);

  explicit FileOutput(Sink sink = write_to_file) : sink_(std::move(sink)) {}

  void put(int fd, std::string_view text, const Waiting& waiting);
  void finish();  // waits until all is written
  // Why the first lost text was lost; empty: none was lost so far.
  const std::string& lost() const { return lost_; }

 private:
  Sink sink_;
  std::size_t queued_ = 0;
  std::string lost_;
  FileWriter writer_;  // the last member: its end waits for work that uses the sink
};

}  // namespace dlrun::cli
