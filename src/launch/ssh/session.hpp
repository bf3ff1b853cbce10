// SshSession: one logged-in connection to a host by libssh, and one command behind it. Every step waits no
// longer than to its deadline and ends when the alarm rings. Hosts prove themselves by known_hosts, we by
// keys, certificates or an ssh agent: nobody is ever asked anything, and no password is ever sent.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

#include "src/launch/ssh/server_connect.hpp"
#include "src/plan/ssh_spec.hpp"

namespace dlrun::launch {

struct SshFree {
  void operator()(ssh_session session) const { ::ssh_free(session); }
  void operator()(ssh_channel channel) const { ::ssh_channel_free(channel); }
};
using SessionHandle = std::unique_ptr<ssh_session_struct, SshFree>;
using ChannelHandle = std::unique_ptr<ssh_channel_struct, SshFree>;

// How a command ended, as far as the server said.
struct RemoteEnd {
  std::optional<int> code;
  std::string signal = {};
  std::string text() const;
};

// One command, running. Its channel dies before its session.
class SshCommand {
 public:
  explicit SshCommand(ChannelHandle channel);
  SshCommand(const SshCommand&) = delete;
  SshCommand& operator=(const SshCommand&) = delete;
  ~SshCommand();
  ssh_channel channel() const { return channel_.get(); }
  const RemoteEnd& end() const { return end_; }

 private:
  ChannelHandle channel_;
  RemoteEnd end_;
  ssh_channel_callbacks_struct callbacks_{};
};

class SshSession {
 public:
  SshSession(const Alarm& alarm, Ticks deadline) : alarm_(alarm), deadline_(deadline) {}
  SshSession(const SshSession&) = delete;
  SshSession& operator=(const SshSession&) = delete;
  ~SshSession();

  // Connected, the host's key checked, and logged in. `writing` guards known_hosts among the threads.
  Result<void> open(const std::string& host, const plan::SshSpec& settings, std::mutex& writing);
  // Where open() failed: the server only had too many callers at once.
  bool turned_away() const { return turned_away_; }
  Result<std::unique_ptr<SshCommand>> start(const std::string& command);

  // Until there is something to read (or, where something is to be written, to write), but no longer than
  // `until`.
  Wake wait(Ticks until) const;
  ssh_session handle() const { return session_.get(); }
  // What libssh says went wrong.
  std::string reason() const;

 private:
  Result<void> configure(const std::string& host, const plan::SshSpec& settings);
  Result<void> connect(const plan::SshSpec& settings);
  Result<void> check_host_key(plan::HostKeys policy, std::mutex& writing);
  Result<void> accept_host_key(const std::string& fingerprint, std::mutex& writing);
  Result<void> log_in();
  template <class Call>
  Result<bool> accepted(Call call);
  Error refused() const;
  // Calls until it no longer says `again`; an Error where the time or somebody's timeout is over.
  template <class Call>
  Result<int> finish(std::string_view step, int again, Call call);

  const Alarm& alarm_;
  Ticks deadline_;
  SessionHandle session_;
  bool turned_away_ = false;
  std::string host_, user_;
  unsigned port_ = 22;
};

}  // namespace dlrun::launch
