#include "src/launch/ssh_node.hpp"

#include <cerrno>
#include <random>
#include <thread>

#include <sys/socket.h>

#include "src/base/file.hpp"
#include "src/launch/ssh_session.hpp"
#include "src/launch/ssh_stream.hpp"

namespace dlrun::launch {
namespace {

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

class Errand {
 public:
  Errand(SshErrand what, SshShared& shared) : what_(std::move(what)), shared_(shared) {}

  void run() {
    if (auto done = carry_out(); !done) tell(SshNews::Failed{std::move(done).error()});
  }

 private:
  using News = decltype(SshNews::what);
  void tell(News news) { shared_.tell({what_.node, std::move(news)}); }
  void note(const std::string& text) { tell(SshNews::Note{what_.host + ": " + text}); }

  // Errors are about nodes that never had an agent: what comes later is the stream's end.
  Result<void> carry_out() {
    const std::unique_ptr<SshSession> session = TRY(log_in());
    const std::string word = new_stream_word();
    const auto command = TRY(session->start(remote_agent_command(what_.program, word)));
    SshStream stream(*session, *command, shared_.alarm, [this](const std::string& text) { note(text); });
    TRY(stream.begin(word, what_.program, what_.deadline));
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      return fail(ErrorKind::unavailable, "socketpair: {}", system_reason(errno));
    const UniqueFd ours(pair[0]);
    tell(SshNews::Connected{UniqueFd(pair[1])});
    shared_.keep_last_words(what_.node, stream.carry(ours.get()));
    return {};
  }

  Result<std::unique_ptr<SshSession>> log_in() {
    for (Backoff backoff;;) {
      auto session = std::make_unique<SshSession>(shared_.alarm, what_.deadline);
      auto opened = session->open(what_.host, what_.settings, shared_.known_hosts);
      if (opened) return session;
      const Ticks again =
          std::chrono::steady_clock::now() + std::chrono::duration_cast<Ticks::duration>(backoff.next());
      if (!session->turned_away() || again >= what_.deadline) return fail(std::move(opened).error());
      session.reset();
      if (wait_for(-1, 0, shared_.alarm, again) == Wake::alarm) return fail(std::move(opened).error());
    }
  }

  SshErrand what_;
  SshShared& shared_;
};

}  // namespace

void SshShared::tell(SshNews news) {
  const std::scoped_lock lock(lock_);
  news_.push_back(std::move(news));
  bell_.ring();
}

std::vector<SshNews> SshShared::take() {
  const std::scoped_lock lock(lock_);
  bell_.silence();
  return std::exchange(news_, {});
}

void SshShared::keep_last_words(NodeIndex node, std::string text) {
  const std::scoped_lock lock(lock_);
  last_words_[node.get()] = std::move(text);
}

std::string SshShared::last_words(NodeIndex node) const {
  const std::scoped_lock lock(lock_);
  const auto found = last_words_.find(node.get());
  return found == last_words_.end() ? std::string() : found->second;
}

void SshShared::thread_began() {
  const std::scoped_lock lock(lock_);
  ++threads_;
}

void SshShared::thread_ended() {
  const std::scoped_lock lock(lock_);
  --threads_;
  ended_.notify_all();
}

void SshShared::await_threads(Seconds limit) {
  std::unique_lock lock(lock_);
  ended_.wait_for(lock, limit, [this] { return threads_ == 0; });
}

// Detached: a name service that does not answer can hold a thread for half a minute, and nobody who pressed
// Ctrl-C should wait for that.
void start_ssh_errand(SshErrand errand, std::shared_ptr<SshShared> shared) {
  shared->thread_began();
  std::thread([errand = std::move(errand), shared = std::move(shared)]() mutable {
    Errand(std::move(errand), *shared).run();
    shared->thread_ended();
  }).detach();
}

}  // namespace dlrun::launch
