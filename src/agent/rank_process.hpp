// RankProcess: one rank from start to end. Reads both its streams, cuts them into whole lines, writes them to
// the rank's log and hands them on. It decides nothing: when to signal and what an end means is the
// Supervisor's and the agent's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/plan/plan.hpp"
#include "src/process/child.hpp"
#include "src/process/event_loop.hpp"
#include "src/process/line_buffer.hpp"

namespace dlrun::agent {

enum class Stream { out, err };

class RankProcess {
 public:
  struct Callbacks {
    std::function<void(Rank, Stream, const std::vector<std::string>& lines)> lines;
    std::function<void(Rank, const Error&)> log_failed;  // the log file cannot be written; once a rank
  };
  struct Start {
    Environment environment;
    std::string working_directory;
    std::string log_path;
    std::vector<int> inherited_fds;
    std::vector<int> processors;
    std::string program = {};  // where it is not argv[0]
    std::optional<rlimit> open_files = {};
  };
  static Result<std::unique_ptr<RankProcess>> start(const plan::RankPlan& plan, const Start& start,
                                                    EventLoop& loop, Callbacks callbacks);
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
  void pause_output();
  void resume_output();
  // Reads what is left without waiting, and closes: also where a stray still holds the pipe.
  void close_output();

 private:
  struct Pipe {
    UniqueFd fd;
    LineBuffer lines;
  };
  RankProcess(Rank rank, EventLoop& loop, Callbacks callbacks)
      : rank_(rank), loop_(loop), callbacks_(std::move(callbacks)) {}
  enum class Reading { more_may_come, would_block, ended };
  Reading read_some(Stream stream);
  void drain(Stream stream);
  void hand_on(Stream stream, const std::vector<std::string>& lines);
  Pipe& pipe(Stream stream) { return stream == Stream::out ? out_ : err_; }

  Rank rank_;
  EventLoop& loop_;
  Callbacks callbacks_;
  pid_t pid_ = -1;
  std::optional<ExitStatus> status_;
  Pipe out_, err_;
  UniqueFd log_;
  std::string log_path_;
};

}  // namespace dlrun::agent
