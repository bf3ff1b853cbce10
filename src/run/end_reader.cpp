#include "src/run/end_reader.hpp"

#include <array>
#include <cerrno>
#include <csignal>

#include <poll.h>
#include <unistd.h>

#include "schedulers/query.hpp"
#include "src/base/pipe.hpp"
#include "src/process/child.hpp"

namespace dlrun::job {
namespace {

constexpr Seconds kAnswerTimeout{30};  // nobody waits for the answer
constexpr std::size_t kMaxAnswer = std::size_t{64} << 20;

}  // namespace

EndReader::EndReader(EventLoop& loop, std::vector<EndQuestion> questions, const Environment& environment,
                     Callbacks callbacks)
    : loop_(loop),
      questions_(std::move(questions)),
      environment_(query_environment(environment)),
      callbacks_(std::move(callbacks)) {}

EndReader::~EndReader() {
  stop();
}

void EndReader::ask() {
  if (pid_ || pipe_ || which_ >= questions_.size()) return;
  start();
}

void EndReader::start() {
  auto pipe = make_pipe();
  if (!pipe) return callbacks_.failed(pipe.error());
  set_nonblocking(pipe->read);
  ChildSpec spec;
  spec.argv = questions_[which_].argv;
  spec.environment = environment_;
  spec.stdout_fd = pipe->write.get();
  auto pid = start_child(spec);
  if (!pid && ++which_ < questions_.size()) return start();
  if (!pid) return callbacks_.failed(pid.error());
  pid_ = *pid;
  status_.reset();
  answer_.clear();
  pipe_ = std::move(pipe->read);
  loop_.watch(pipe_.get(), POLLIN, [this](short) { read_some(); });
  limit_ = loop_.after(kAnswerTimeout, [this] {
    limit_.reset();
    if (pid_) ::kill(-*pid_, SIGKILL);
    close();
    conclude();
  });
}

void EndReader::read_some() {
  std::array<char, 16384> chunk;
  const ssize_t got = ::read(pipe_.get(), chunk.data(), chunk.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) answer_.append(chunk.data(), static_cast<std::size_t>(got));
  if (got > 0 && answer_.size() < kMaxAnswer) return;
  close();
  conclude();
}

void EndReader::close() {
  if (!pipe_) return;
  loop_.unwatch(pipe_.get());
  pipe_.reset();
}

void EndReader::child_ended() {
  if (!pid_) return;
  status_ = reap(*pid_);
  if (!status_) return;
  pid_.reset();
  conclude();
}

// Both its output and its end are known.
void EndReader::conclude() {
  if (pid_ || pipe_ || !status_) return;
  if (limit_) loop_.cancel(*limit_);
  limit_.reset();
  const EndQuestion& question = questions_[which_];
  if (!status_->success())
    return callbacks_.failed({.kind = ErrorKind::unavailable,
                              .what = fmt::format("{}: {}", question.argv.front(), status_->text())});
  const auto end = question.read(answer_);
  if (const auto left = end && callbacks_.left && question.left ? question.left(answer_) : std::nullopt)
    callbacks_.left(*left);
  end ? callbacks_.read(*end) : callbacks_.failed(end.error());
}

std::vector<pid_t> EndReader::children() const {
  return pid_ ? std::vector<pid_t>{*pid_} : std::vector<pid_t>{};
}

void EndReader::stop() {
  close();
  if (limit_) loop_.cancel(*limit_);
  limit_.reset();
  if (!pid_) return;
  ::kill(-*pid_, SIGKILL);
  // A killed one is gone in a moment, unless the kernel itself waits for a dead file server.
  for (int turn = 0; turn < 2000 && !reap(*pid_); ++turn) ::usleep(1000);
  pid_.reset();
}

}  // namespace dlrun::job
