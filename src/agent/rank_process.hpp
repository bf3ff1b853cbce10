// RankProcess: one rank from start to end. Reads both its streams, writes their bytes to the rank's log, and
// hands them on as lines; a line that has no end yet (a prompt, a progress bar) is logged and handed on
// within a second. While the log's file system takes no writes, the rank's pipes are not read. It makes no
// decision: when to signal and what an end means is the Supervisor's and the agent's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/plan/plan.hpp"
#include "src/process/appended_file.hpp"
#include "src/process/child.hpp"
#include "src/process/event_loop.hpp"
#include "src/process/output_lines.hpp"
#include "src/protocol/messages.hpp"

namespace dlrun::agent {

using Stream = protocol::OutputStream;

class RankProcess {
 public:
  struct Callbacks {
    std::function<void(Rank, Stream, const std::vector<std::string>& lines)> lines;
    // A line that has no end yet, as it stands: also where it looks the same, for bytes came.
    std::function<void(Rank, Stream, const std::string& text)> unfinished;
    std::function<void(Rank, const Error&)> log_failed;  // the log file cannot be written; once per rank
  };
  struct Start {
    Environment environment;
    std::string working_directory;
    UniqueFd log;  // open_rank_log()
    std::string log_path;
    int input_fd = -1;  // its standard input; -1: /dev/null
    std::vector<int> inherited_fds;
    std::vector<int> processors;
    std::optional<MemoryBinding> memory = {};
    std::string program = {};  // where it is not argv[0]
    std::optional<rlimit> open_files = {};
    OtherDescriptors other_descriptors = OtherDescriptors::closed;
  };
  static Result<std::unique_ptr<RankProcess>> start(const plan::RankPlan& plan, Start start, EventLoop& loop,
                                                    FileWriter& writer, Callbacks callbacks);
  ~RankProcess();
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool running() const { return !status_.has_value(); }
  const std::optional<ExitStatus>& status() const { return status_; }
  // To the rank's whole process group; nothing once it has been reaped, since the number may be another's
  // then.
  void signal(int number) const;
  // True where it has just ended: its output so far has been handed on.
  bool try_reap();
  // For a reader that is slower than the rank.
  void pause_output();
  void resume_output();
  // Reads what is left without waiting, and closes: also where a stray still holds the pipe.
  void close_output();

 private:
  struct OutputPipe {
    UniqueFd fd;
    OutputLines lines;
    std::string unlogged;   // of a line that has no end yet
    bool mid_line = false;  // bytes came behind the last newline ...
    bool has_news = false;  // ... and nobody was told of the last of them
  };
  RankProcess(Rank rank, EventLoop& loop, Callbacks callbacks)
      : rank_(rank), loop_(loop), callbacks_(std::move(callbacks)) {}
  enum class Reading { more_may_come, would_block, ended };
  Reading read_some(Stream stream);
  void drain(Stream stream);
  void take(Stream stream, std::string_view bytes);
  void finish(Stream stream);
  void write_log(std::string_view bytes);
  void mark_time();
  void flush_unfinished();
  void update_watches();
  OutputPipe& pipe(Stream stream) { return stream == Stream::out ? out_ : err_; }

  Rank rank_;
  EventLoop& loop_;
  Callbacks callbacks_;
  pid_t pid_ = -1;
  std::optional<ExitStatus> status_;
  OutputPipe out_, err_;
  std::unique_ptr<AppendedFile> log_;
  FileWriter* writer_ = nullptr;
  std::string times_path_;       // where it is written down when the log had which length
  std::uint64_t logged_ = 0;     // bytes
  std::optional<Ticks> marked_;  // the last time
  bool paused_ = false;
  std::optional<EventLoop::TimerId> flush_timer_;
};

// Opens a log at its end; may block. The run directory is made where dlrun runs: what is not there on another
// node is another file system.
Result<UniqueFd> open_rank_log(const std::string& path);

}  // namespace dlrun::agent
