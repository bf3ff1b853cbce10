// AppendedFile: a file that grows at its end through a FileWriter. Bytes that the file system has not taken
// wait in memory, in order; full() tells their source to slow down until `drained`. The first write that
// fails is told once, and later bytes are dropped: half of a log with a hole would mislead.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"
#include "src/process/file_writer.hpp"

namespace dlrun {

class AppendedFile {
 public:
  static constexpr std::size_t kMaxQueued = std::size_t{1} << 20;
  struct Callbacks {
    std::function<void(const Error&)> failed;
    std::function<void()> drained;  // what made it full has been written
  };

  // `path` is for the error text.
  AppendedFile(FileWriter& writer, UniqueFd file, std::string path, Callbacks callbacks);
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  void append(std::string_view bytes);
  std::size_t queued() const { return queued_; }
  bool full() const { return queued_ >= kMaxQueued; }

 private:
  struct Target {
    UniqueFd file;
    std::string path;
  };
  FileWriter::Work write_pending();
  void write_next();
  void on_written(std::size_t size, const Result<void>& result);

  FileWriter& writer_;
  std::shared_ptr<Target> target_;  // shared with the work in hand
  Callbacks callbacks_;
  std::shared_ptr<AppendedFile*> self_;  // what is done after our end has nobody to tell
  std::string pending_;                  // behind the write in hand
  std::size_t queued_ = 0;               // both
  bool writing_ = false, failed_ = false, was_full_ = false;
};

}  // namespace dlrun
