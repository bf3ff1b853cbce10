// EndReader: asks the scheduler again when the job ends, as a child beside the loop. A controller that is
// busy, slow or not there does no harm: one question at a time, a limit on each, and what was known stays
// known.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "schedulers/end_time.hpp"
#include "src/base/environment.hpp"
#include "src/process/event_loop.hpp"
#include "src/process/exit_status.hpp"

namespace dlrun::job {

class EndReader {
 public:
  struct Callbacks {
    std::function<void(std::optional<Instant>)> read;  // unset: no limit any more
    std::function<void(Seconds)> left = {};            // before it: what is left by the scheduler's count
    std::function<void(const Error&)> failed;
  };
  EndReader(EventLoop& loop, std::vector<EndQuestion> questions, const Environment& environment,
            Callbacks callbacks);
  ~EndReader();
  EndReader(const EndReader&) = delete;
  EndReader& operator=(const EndReader&) = delete;

  // Does nothing while a question is open, or where there is none to ask.
  void ask();
  std::vector<pid_t> children() const;
  void child_ended();  // after SIGCHLD
  void stop();         // ends the open question, and waits for its process's end

 private:
  void start();
  void read_some();
  void close();
  void conclude();
  EventLoop& loop_;
  std::vector<EndQuestion> questions_;
  Environment environment_;
  Callbacks callbacks_;
  std::size_t which_ = 0;
  std::optional<pid_t> pid_;
  std::optional<ExitStatus> status_;
  UniqueFd pipe_;
  std::string answer_;
  std::optional<EventLoop::TimerId> limit_;
};

}  // namespace dlrun::job
