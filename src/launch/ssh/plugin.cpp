// The plug-in libdlrun-ssh.so: one node's ssh connection, from the first try to the end of its agent's
// stream. It knows nothing of launchers, plans and loops; what it has to say goes through the C table.
#include <cerrno>
#include <random>

#include <fcntl.h>
#include <sys/socket.h>

#include "src/base/file.hpp"
#include "src/launch/ssh/session.hpp"
#include "src/launch/ssh/stream.hpp"
#include "src/launch/ssh/table.h"

namespace dlrun::launch {
namespace {

std::mutex known_hosts;  // the file is written by one thread at a time

// A server that drops callers at random is asked again after a while that grows, and differs from thread to
// thread.
class Backoff {
 public:
  Seconds next() {
    const Seconds out = pause_ * std::uniform_real_distribution<>(0.5, 1.5)(random_);
    pause_ = std::min(pause_ * 1.7, Seconds(3));
    return out;
  }

 private:
  Seconds pause_{0.15};
  std::minstd_rand random_{std::random_device{}()};
};

plan::SshSpec settings_of(const DlrunSshRequest& request) {
  plan::SshSpec out;
  out.host_keys = request.accept_new_keys != 0 ? plan::HostKeys::accept_new : plan::HostKeys::strict;
  out.user = request.user;
  if (request.port != 0) out.port = Port(request.port);
  out.connect_timeout = Seconds(request.connect_timeout);
  return out;
}

class Request {
 public:
  Request(const DlrunSshRequest& what, const DlrunSshHost& host)
      : what_(what),
        host_(host),
        settings_(settings_of(what)),
        deadline_(std::chrono::nanoseconds(what.deadline)),
        alarm_(UniqueFd(::fcntl(what.alarm_fd, F_DUPFD_CLOEXEC, 3))) {}

  void run() {
    if (auto done = carry_out(); !done)
      host_.failed(host_.context, done.error().what.c_str(), done.error().hint.c_str());
  }

 private:
  void note(const std::string& text) const {
    host_.note(host_.context, (what_.host + (": " + text)).c_str());
  }

  // Errors are about nodes that never had an agent: what comes later is the stream's end.
  Result<void> carry_out() {
    const std::unique_ptr<SshSession> session = TRY(log_in());
    const SshStream::Start start{
        .program = what_.program, .word = new_stream_word(), .copy = {what_.copy, what_.copy_size}};
    const auto command =
        TRY(session->start(what_.copy != nullptr ? remote_agent_or_copy(start.program, start.word)
                                                 : remote_agent_command(start.program, start.word)));
    const Seconds lost_after(what_.lost_after);
    SshStream stream(*session, *command, alarm_, lost_after, [this](const std::string& text) { note(text); });
    TRY(stream.begin(start, deadline_));
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      return fail(ErrorKind::unavailable, "socketpair: {}", system_reason(errno));
    const UniqueFd ours(pair[0]);
    host_.connected(host_.context, pair[1]);
    host_.ended(host_.context, stream.carry(ours.get()).c_str());
    return {};
  }

  Result<std::unique_ptr<SshSession>> log_in() {
    for (Backoff backoff;;) {
      auto session = std::make_unique<SshSession>(alarm_, deadline_);
      auto opened = session->open(what_.host, settings_, known_hosts);
      if (opened) return session;
      const Ticks again =
          std::chrono::steady_clock::now() + std::chrono::duration_cast<Ticks::duration>(backoff.next());
      if (!session->turned_away() || again >= deadline_) return fail(std::move(opened).error());
      session.reset();
      if (wait_for(-1, 0, alarm_, again) == Wake::alarm) return fail(std::move(opened).error());
    }
  }

  const DlrunSshRequest& what_;
  const DlrunSshHost& host_;
  plan::SshSpec settings_;
  Ticks deadline_;
  Alarm alarm_;
};

}  // namespace
}  // namespace dlrun::launch

extern "C" __attribute__((visibility("default"))) const DlrunSshTable* dlrun_ssh_table() {
  static const DlrunSshTable table{.version = DLRUN_SSH_TABLE_VERSION,
                                   .run = [](const DlrunSshRequest* request, const DlrunSshHost* host) {
                                     dlrun::launch::Request(*request, *host).run();
                                   }};
  return &table;
}
