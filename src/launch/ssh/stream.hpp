// SshStream: the stream of an agent that an ssh server started. It finds the beginning of the stream behind
// the output of a login shell, then forwards bytes both ways between the channel and one end of a socket
// pair, until either side ends. Each direction waits for the slower side, so that no queue grows. A server
// that answers nothing, not even a keepalive request of ssh, is given up.
#pragma once

#include <functional>
#include <string>

#include "src/base/unique_fd.hpp"
#include "src/launch/ssh/command.hpp"
#include "src/launch/ssh/session.hpp"
#include "src/process/line_buffer.hpp"

namespace dlrun::launch {

class SshStream {
 public:
  using Note = std::function<void(const std::string& text)>;
  SshStream(SshSession& session, SshCommand& command, const Alarm& alarm, Seconds lost_after, Note note)
      : session_(session),
        command_(command),
        alarm_(alarm),
        lost_after_(lost_after),
        note_(std::move(note)) {}

  struct Start {
    std::string program, word;
    std::string_view copy = {};  // dlrun's archive, in case that the command asks for it
  };
  // Waits for the agent's first line; the Error says why there is none.
  Result<void> begin(const Start& start, Ticks deadline);
  // Forwards until the end. Returns the reason of an end that was no regular disconnect. Call it before
  // `local` is closed.
  std::string carry(int local);

 private:
  enum class Flow { on, ended };
  Flow read_agent();
  Flow read_channel(std::string& into, std::size_t most, int which);
  void hear_stderr();
  void await_close(Seconds limit);
  void take_answer(const Start& start);
  void send_copy();
  Error failed_start(const StreamStart& heard, bool reached, const Start& start) const;
  std::string ending() const;
  std::optional<std::string> dead();

  SshSession& session_;
  SshCommand& command_;
  const Alarm& alarm_;
  Seconds lost_after_;
  Note note_;
  std::string to_head_, to_agent_;
  bool answered_ = false, copied_ = false;  // whether the agent's host answered, and got a copy
  LineBuffer stderr_lines_;
  std::string last_stderr_;
  Ticks heard_ = std::chrono::steady_clock::now(), asked_ = heard_;
  bool lost_ = false;
};

}  // namespace dlrun::launch
