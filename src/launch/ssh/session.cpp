#include "src/launch/ssh/session.hpp"

#include <poll.h>
#include <unistd.h>

#include "src/base/strings.hpp"
#include "src/launch/ssh/keys.hpp"

namespace dlrun::launch {
namespace {

// libssh may hold bytes that it has not looked at yet, which no poll tells of.
constexpr Milliseconds kMaxPoll{100};

std::string option(ssh_session session, ssh_options_e which) {
  char* value = nullptr;
  if (::ssh_options_get(session, which, &value) != SSH_OK || value == nullptr) return {};
  std::string out(value);
  ::ssh_string_free_char(value);
  return out;
}

bool has_proxy(ssh_session session) {
  const std::string command = option(session, SSH_OPTIONS_PROXYCOMMAND);
  return !command.empty() && command != "none";
}

}  // namespace

std::string RemoteEnd::text() const {
  if (!signal.empty()) return "killed by SIG" + signal;
  return code ? fmt::format("exit code {}", *code) : "no exit code";
}

SshCommand::SshCommand(ChannelHandle channel) : channel_(std::move(channel)) {
  callbacks_.userdata = &end_;
  callbacks_.channel_exit_status_function = [](ssh_session, ssh_channel, int code, void* end) {
    static_cast<RemoteEnd*>(end)->code = code;
  };
  callbacks_.channel_exit_signal_function = [](ssh_session, ssh_channel, const char* signal, int, const char*,
                                               const char*,
                                               void* end) { static_cast<RemoteEnd*>(end)->signal = signal; };
  ssh_callbacks_init(&callbacks_);
  ::ssh_set_channel_callbacks(channel_.get(), &callbacks_);
}

SshCommand::~SshCommand() {
  ::ssh_remove_channel_callbacks(channel_.get(), &callbacks_);
}

SshSession::~SshSession() {
  if (session_ && ::ssh_is_connected(session_.get()) != 0) ::ssh_disconnect(session_.get());
}

std::string SshSession::reason() const {
  const std::string text = ::ssh_get_error(session_.get());
  return text.empty() ? "the connection ended" : text;
}

Wake SshSession::wait(Ticks until) const {
  const int flags = ::ssh_get_poll_flags(session_.get());
  const auto events = static_cast<short>(POLLIN | ((flags & SSH_WRITE_PENDING) != 0 ? POLLOUT : 0));
  return wait_for(::ssh_get_fd(session_.get()), events, alarm_, until);
}

template <class Call>
Result<int> SshSession::finish(std::string_view step, int again, Call call) {
  for (;;) {
    const int rc = call();
    if (rc != again) return rc;
    const Ticks now = std::chrono::steady_clock::now();
    if (now >= deadline_)
      return fail({.kind = ErrorKind::unavailable,
                   .what = fmt::format("no answer to {} in time (launch.start-timeout)", step),
                   .hint = "the node may be frozen, cut off or very busy"});
    if (wait(std::min<Ticks>(deadline_, now + kMaxPoll)) == Wake::alarm)
      return fail(ErrorKind::unavailable, "given up during {}", step);
  }
}

Result<void> SshSession::open(const std::string& host, const plan::SshSpec& settings, std::mutex& writing) {
  TRY(configure(host, settings));
  TRY(connect(settings));
  TRY(check_host_key(settings.host_keys, writing));
  return log_in();
}

// What the job says goes before what ssh_config says, which is read for the rest.
Result<void> SshSession::configure(const std::string& host, const plan::SshSpec& settings) {
  // Its own log goes to stderr, as loud as ssh_config's LogLevel says; what matters of it is in our Errors.
  ::ssh_set_log_callback([](int, const char*, const char*, void*) {});
  session_.reset(::ssh_new());
  if (!session_) return fail(ErrorKind::internal, "libssh cannot allocate a session");
  ssh_session session = session_.get();
  const auto set = [&](ssh_options_e which, const void* value) -> Result<void> {
    if (::ssh_options_set(session, which, value) == SSH_OK) return {};
    return fail(ErrorKind::unavailable, "libssh rejected the option: {}", reason());
  };
  TRY(set(SSH_OPTIONS_HOST, host.c_str()));
  if (::ssh_options_parse_config(session, nullptr) != SSH_OK)
    return fail({.kind = ErrorKind::unavailable,
                 .what = "ssh_config cannot be read: " + reason(),
                 .hint = "see ~/.ssh/config and /etc/ssh/ssh_config"});
  if (!settings.user.empty()) TRY(set(SSH_OPTIONS_USER, settings.user.c_str()));
  if (settings.port) {
    const unsigned port = settings.port->get();
    TRY(set(SSH_OPTIONS_PORT, &port));
  }
  ::ssh_options_get_port(session, &port_);
  host_ = option(session, SSH_OPTIONS_HOST);
  ::ssh_set_blocking(session, 0);
  return {};
}

Result<void> SshSession::connect(const plan::SshSpec& settings) {
  if (!has_proxy(session_.get())) {
    Reached reached = TRY(reach_server(host_, Port(static_cast<std::uint16_t>(port_)),
                                       settings.connect_timeout, alarm_, deadline_));
    turned_away_ = reached.turned_away;
    if (turned_away_)
      return fail({.kind = ErrorKind::unavailable,
                   .what = "its ssh server accepts no more connections (MaxStartups or penalties of sshd)",
                   .hint = "launch.fan-out limits how many nodes are reached at once"});
    const socket_t fd = reached.connection.release();
    ::ssh_options_set(session_.get(), SSH_OPTIONS_FD, &fd);
  }
  const int rc = TRY(finish("the key exchange", SSH_AGAIN, [&] { return ::ssh_connect(session_.get()); }));
  if (rc == SSH_OK) return {};
  const std::string why = reason();
  // Reset while it greets: servers that drop callers at random do it here too.
  turned_away_ = why.find("disconnected") != std::string::npos || why.find("reset") != std::string::npos ||
                 why.find("closed") != std::string::npos;
  return fail(ErrorKind::unavailable, "no ssh connection on port {}: {}", port_, why);
}

Result<void> SshSession::check_host_key(plan::HostKeys policy, std::mutex& writing) {
  const std::string fingerprint = host_key_fingerprint(session_.get());
  switch (::ssh_session_is_known_server(session_.get())) {
    case SSH_KNOWN_HOSTS_OK:
      return {};
    case SSH_KNOWN_HOSTS_CHANGED:
    case SSH_KNOWN_HOSTS_OTHER:
      return fail(
          {.kind = ErrorKind::unavailable,
           .what = fmt::format("its host key is not the one in known_hosts; it shows {}", fingerprint),
           .hint = "the node was reinstalled, or another machine answers in its place: ask its "
                   "administrator, then ssh-keygen -R " +
                   host_});
    case SSH_KNOWN_HOSTS_UNKNOWN:
    case SSH_KNOWN_HOSTS_NOT_FOUND:
      if (policy == plan::HostKeys::accept_new) return accept_host_key(fingerprint, writing);
      return fail(
          {.kind = ErrorKind::unavailable,
           .what = fmt::format("its host key ({}) is in no known_hosts", fingerprint),
           .hint = fmt::format("compare it and add it: ssh-keyscan -p {} {} >> ~/.ssh/known_hosts; or "
                               "--set launch.ssh.host-keys=accept-new",
                               port_, host_)});
    default:
      return fail(ErrorKind::unavailable, "known_hosts cannot be read: {}", reason());
  }
}

Result<void> SshSession::accept_host_key(const std::string& fingerprint, std::mutex& writing) {
  const std::scoped_lock lock(writing);
  if (::ssh_session_update_known_hosts(session_.get()) == SSH_OK) return {};
  return fail(ErrorKind::unavailable, "its host key {} cannot be written to known_hosts: {}", fingerprint,
              reason());
}

// Not left to libssh's own round of keys: that one writes public keys beside the user's private ones.
Result<void> SshSession::log_in() {
  ssh_session session = session_.get();
  user_ = option(session, SSH_OPTIONS_USER);  // known by now, where nobody named one
  if (TRY(accepted([&] { return ::ssh_userauth_agent(session, nullptr); }))) return {};
  for (const std::string& identity : identities(session))
    for (const KeyHandle& key : keys_of(identity))
      if (TRY(accepted([&] { return ::ssh_userauth_publickey(session, nullptr, key.get()); }))) return {};
  // Where ssh_config names several keys, only libssh knows all of them.
  if (!names_identities(session)) return fail(refused());
  if (TRY(accepted([&] { return ::ssh_userauth_publickey_auto(session, nullptr, nullptr); }))) return {};
  return fail(refused());
}

template <class Call>
Result<bool> SshSession::accepted(Call call) {
  const int rc = TRY(finish("our login", SSH_AUTH_AGAIN, call));
  if (rc == SSH_AUTH_SUCCESS) return true;
  if (::ssh_is_connected(session_.get()) != 0) return false;
  return fail(ErrorKind::unavailable, "it closed the connection during our login: {}", reason());
}

Error SshSession::refused() const {
  const KeyState state = state_of(identities(session_.get()));
  Error error{.kind = ErrorKind::unavailable,
              .what = fmt::format("it refused our keys for the user {}", user_),
              .hint = fmt::format("add your public key to ~/.ssh/authorized_keys there; try: ssh -o "
                                  "BatchMode=yes {} true",
                                  host_)};
  if (state.usable == 0 && !state.locked.empty()) {
    error.what =
        fmt::format("the key {} needs its passphrase, and no ssh agent holds it", state.locked.front());
    error.hint = "run ssh-agent and ssh-add first: dlrun never asks for a passphrase";
  } else if (state.usable == 0) {
    error.what =
        fmt::format("there is no key for the login as {}, and no ssh agent with one that it accepts", user_);
    error.hint = "create one with ssh-keygen, or run ssh-agent and ssh-add; passwords are never used";
  }
  return error;
}

Result<std::unique_ptr<SshCommand>> SshSession::start(const std::string& command) {
  ChannelHandle channel(::ssh_channel_new(session_.get()));
  if (!channel) return fail(ErrorKind::unavailable, "libssh cannot open a channel: {}", reason());
  auto running = std::make_unique<SshCommand>(std::move(channel));
  const int opened = TRY(finish("the request for a session", SSH_AGAIN,
                                [&] { return ::ssh_channel_open_session(running->channel()); }));
  if (opened != SSH_OK)
    return fail({.kind = ErrorKind::unavailable,
                 .what = "the server refused to open a session: " + reason(),
                 .hint = "is the account disabled there, or MaxSessions of sshd 0?"});
  const int started = TRY(finish("the request for a command", SSH_AGAIN, [&] {
    return ::ssh_channel_request_exec(running->channel(), command.c_str());
  }));
  if (started != SSH_OK)
    return fail({.kind = ErrorKind::unavailable,
                 .what = "the server refused to run a command: " + reason(),
                 .hint = "the account may be for sftp only"});
  return running;
}

}  // namespace dlrun::launch
