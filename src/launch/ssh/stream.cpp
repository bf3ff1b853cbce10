#include "src/launch/ssh/stream.hpp"

#include <array>
#include <cerrno>

#include <libssh/server.h>
#include <poll.h>
#include <sys/socket.h>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/launch/stage.hpp"
#include "src/protocol/tcp_acknowledgement.hpp"

namespace dlrun::launch {
namespace {

constexpr std::size_t kChunk = 64 * 1024;
constexpr std::size_t kKeptStderr = 2048;
constexpr Seconds kAskAfter{5};         // of silence: ssh's own question whether somebody is there
constexpr Seconds kMinGiveUp{15};       // of silence
constexpr Seconds kShutdownTimeout{1};  // how long the server may take to say how the agent ended
constexpr Seconds kReason{5};           // the same where that tells why it did not start: worth a wait
constexpr Milliseconds kTurn{1000};

// Whether the end has come; the command's callbacks are told. libssh 0.11 has a new name for it.
void ask_for_exit(ssh_channel channel) {
#if LIBSSH_VERSION_INT >= SSH_VERSION_INT(0, 11, 0)
  std::uint32_t code = 0;
  ::ssh_channel_get_exit_state(channel, &code, nullptr, nullptr);
#else
  ::ssh_channel_get_exit_status(channel);
#endif
}

Ticks now() {
  return std::chrono::steady_clock::now();
}

Ticks in(Seconds time) {
  return now() + std::chrono::duration_cast<Ticks::duration>(time);
}

}  // namespace

SshStream::Flow SshStream::read_channel(std::string& into, std::size_t most, int which) {
  std::array<char, kChunk> chunk;
  while (into.size() < most) {
    const int got = ::ssh_channel_read_nonblocking(command_.channel(), chunk.data(), chunk.size(), which);
    if (got == 0 || got == SSH_AGAIN) {
      if (::ssh_channel_is_eof(command_.channel()) != 0 && ::ssh_channel_poll(command_.channel(), which) <= 0)
        return Flow::ended;
      return Flow::on;
    }
    if (got < 0) {
      lost_ = got == SSH_ERROR && ::ssh_channel_is_closed(command_.channel()) == 0;
      return Flow::ended;
    }
    into.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return Flow::on;
}

// Agents say nothing there but what went wrong before they had a stream, and a login shell its own
// complaints.
void SshStream::hear_stderr() {
  std::string text;
  read_channel(text, kChunk, 1);
  for (const std::string& line : stderr_lines_.add(text)) {
    if (trim(line).empty()) continue;
    last_stderr_ += line + "\n";
    note_(line);
  }
  if (last_stderr_.size() > kKeptStderr) last_stderr_.erase(0, last_stderr_.size() - kKeptStderr);
}

SshStream::Flow SshStream::read_agent() {
  hear_stderr();
  return read_channel(to_head_, kChunk, 0);
}

Result<void> SshStream::begin(const Start& start, Ticks deadline) {
  StreamStart heard(start.word);
  bool reached = false;
  answered_ = start.copy.empty();
  for (;;) {
    const Flow flow = read_agent();
    if (!reached && !to_head_.empty()) {
      const auto rest = TRY(heard.add(std::exchange(to_head_, {})));
      reached = rest.has_value();
      to_head_ = rest.value_or("");
    }
    if (reached && !to_head_.empty() && !answered_) take_answer(start);
    send_copy();
    if (reached && !to_head_.empty()) break;
    if (flow == Flow::ended) {
      await_close(kReason);
      return fail(failed_start(heard, reached, start));
    }
    const Wake wake = session_.wait(std::min<Ticks>(deadline, now() + Milliseconds(100)));
    if (wake == Wake::alarm) return fail(ErrorKind::unavailable, "cancelled before its agent answered");
    if (now() >= deadline) {
      Error late = failed_start(heard, reached, start);
      late.what = !reached ? "its login shell did not reach the dlrun command in time (launch.start-timeout)"
                  : copied_ && !to_agent_.empty()
                      ? "the copy of dlrun was not transferred in time (launch.start-timeout)"
                      : "its agent was started but did not answer in time (launch.start-timeout)";
      return fail(late);
    }
  }
  for (const std::string& line : heard.noise()) note_("its login shell printed: " + line);
  heard_ = asked_ = now();
  return {};
}

// The first character behind the word.
void SshStream::take_answer(const Start& start) {
  answered_ = true;
  copied_ = to_head_.front() == kWantsCopy;
  to_head_.erase(0, 1);
  if (copied_) to_agent_ = fmt::format("{}\n{}", start.copy.size(), start.copy);
}

// Sends as much as the channel takes. Nobody else writes before the agent's first line.
void SshStream::send_copy() {
  std::size_t sent = 0;
  while (sent < to_agent_.size() && ::ssh_channel_window_size(command_.channel()) > 0) {
    const auto most = std::min<std::size_t>(
        {to_agent_.size() - sent, kChunk, ::ssh_channel_window_size(command_.channel())});
    const int put =
        ::ssh_channel_write(command_.channel(), to_agent_.data() + sent, static_cast<uint32_t>(most));
    if (put <= 0) break;
    sent += static_cast<std::size_t>(put);
  }
  to_agent_.erase(0, sent);
}

Error SshStream::failed_start(const StreamStart& heard, bool reached, const Start& start) const {
  Error error{.kind = ErrorKind::unavailable, .what = {}};
  const RemoteEnd& end = command_.end();
  if (lost_) {
    error.what = "the connection was lost before its agent answered: " + session_.reason();
  } else if (!reached) {
    error.what = fmt::format("its login shell ended ({}) before it reached the dlrun command", end.text());
    error.hint = "is the account enabled there, and does 'ssh HOST true' work?";
    for (const std::string& line : heard.noise()) error.what += "\n    | " + line;
  } else if (copied_ && end.code == kNotStaged) {
    error.what = fmt::format("there is no {} there, and no copy of it can be made", start.program);
    error.hint = "a copy needs tar, gzip and free space in TMPDIR (else /tmp) on the node";
  } else if (copied_ && (end.code == 127 || end.code == 126)) {
    error.what = fmt::format("there is no {} there, and the copy of it does not run", start.program);
    error.hint = "install the libraries that it lacks on the nodes";
  } else if (end.code == 127 || end.code == 126) {
    error.what = end.code == 127 ? fmt::format("there is no {} there", start.program)
                                 : fmt::format("{} cannot be run there", start.program);
    error.hint =
        "install dlrun at the same path on every node or on a shared file system; or copy it with --stage";
  } else {
    error.what = fmt::format("its agent was started and ended at once ({})", end.text());
    error.hint = "the dlrun there may be another version: dlrun --version";
  }
  for (const std::string& line : shown_lines(last_stderr_)) error.what += "\n    | " + line;
  return error;
}

// Why the node is lost; unset if it is not.
std::optional<std::string> SshStream::dead() {
  const Ticks at = now();
  if (const Seconds since = unacknowledged_for(::ssh_get_fd(session_.handle()));
      since > acknowledge_limit(lost_after_))
    return fmt::format("its machine has acknowledged nothing for {}: the node is cut off or down",
                       format_duration(since));
  if (const Seconds give_up = std::max(lost_after_, kMinGiveUp); at - heard_ > give_up)
    return fmt::format(
        "nothing was received over its ssh connection for {}: the node is cut off, frozen or down",
        format_duration(give_up));
  if (at - heard_ > kAskAfter && at - asked_ > kAskAfter) {
    asked_ = at;
    ::ssh_send_keepalive(session_.handle());
  }
  return std::nullopt;
}

void SshStream::await_close(Seconds limit) {
  const Ticks until = in(limit);
  while (now() < until && ::ssh_channel_is_closed(command_.channel()) == 0 &&
         ::ssh_is_connected(session_.handle()) != 0) {
    hear_stderr();
    // Behind the end of the output libssh reads no packets for us unless it is asked for this one.
    ask_for_exit(command_.channel());
    if (command_.end().code || !command_.end().signal.empty()) return;
    if (session_.wait(std::min<Ticks>(until, now() + Milliseconds(100))) == Wake::alarm) return;
  }
}

std::string SshStream::ending() const {
  const RemoteEnd& end = command_.end();
  if (end.code == 0) return {};
  std::string out;
  if (end.code || !end.signal.empty())
    out = fmt::format("the agent ended: {}", end.text());
  else
    out = "its ssh connection was lost: " + session_.reason();
  for (const std::string& line : shown_lines(last_stderr_)) out += "\n    | " + line;
  return out;
}

std::string SshStream::carry(int local) {
  bool head_gone = false;
  std::array<char, kChunk> chunk;
  ssh_channel channel = command_.channel();
  for (;;) {
    // From the agent to the head.
    Flow flow = Flow::on;
    if (to_head_.size() < kChunk) flow = read_agent();
    while (!to_head_.empty() && !head_gone) {
      const ssize_t put = ::send(local, to_head_.data(), to_head_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0 && errno == EAGAIN) break;
      if (put < 0)
        head_gone = true;
      else
        to_head_.erase(0, static_cast<std::size_t>(put));
    }
    if (head_gone) to_head_.clear();
    if (flow == Flow::ended && to_head_.empty()) {
      if (!lost_) await_close(kShutdownTimeout);
      return ending();
    }
    // And the other way.
    while (to_agent_.size() < kChunk && !head_gone) {
      const ssize_t got = ::recv(local, chunk.data(), chunk.size(), MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) break;
      if (got <= 0)
        head_gone = true;
      else
        to_agent_.append(chunk.data(), static_cast<std::size_t>(got));
    }
    while (!to_agent_.empty() && ::ssh_channel_window_size(channel) > 0) {
      const auto most = std::min<std::size_t>(to_agent_.size(), ::ssh_channel_window_size(channel));
      const int put = ::ssh_channel_write(channel, to_agent_.data(), static_cast<uint32_t>(most));
      if (put <= 0) break;
      to_agent_.erase(0, static_cast<std::size_t>(put));
    }
    if (head_gone && to_agent_.empty()) {
      ::ssh_channel_send_eof(channel);
      await_close(kShutdownTimeout);
      return {};
    }
    // Until something can be done.
    const int flags = ::ssh_get_poll_flags(session_.handle());
    std::array<pollfd, 3> polled{pollfd{::ssh_get_fd(session_.handle()),
                                        static_cast<short>((to_head_.size() < kChunk ? POLLIN : 0) |
                                                           ((flags & SSH_WRITE_PENDING) != 0 ? POLLOUT : 0)),
                                        0},
                                 pollfd{local,
                                        static_cast<short>((to_agent_.size() < kChunk ? POLLIN : 0) |
                                                           (to_head_.empty() ? 0 : POLLOUT)),
                                        0},
                                 pollfd{alarm_.fd(), POLLIN, 0}};
    const Ticks before = now();
    ::poll(polled.data(), polled.size(), static_cast<int>(kTurn.count()));
    // Who was stopped itself cannot know what it would have heard.
    if (polled[0].revents != 0 || now() - before > 3 * kTurn) heard_ = now();
    if (polled[2].revents != 0) head_gone = true;
    if (auto why = dead()) return *why;
  }
}

}  // namespace dlrun::launch
