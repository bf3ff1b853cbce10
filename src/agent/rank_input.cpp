#include "src/agent/rank_input.hpp"

#include <cerrno>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace dlrun::agent {

RankInput::RankInput(EventLoop& loop, UniqueFd pipe, Callbacks callbacks)
    : loop_(loop), pipe_(std::move(pipe)), callbacks_(std::move(callbacks)) {}

RankInput::~RankInput() {
  close();
}

void RankInput::close() {
  if (!pipe_) return;
  loop_.unwatch(pipe_.get());
  pipe_.reset();
  waiting_.clear();
}

void RankInput::give(std::string_view bytes) {
  if (!pipe_) return;
  waiting_ += bytes;
  loop_.watch(pipe_.get(), POLLOUT, [this](short) { write_ready(); });
}

void RankInput::end() {
  ended_ = true;
  if (waiting_.empty()) close();
}

void RankInput::write_ready() {
  const ssize_t put = ::write(pipe_.get(), waiting_.data(), waiting_.size());
  if (put < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (put < 0) {
    close();
    return callbacks_.closed();
  }
  waiting_.erase(0, static_cast<std::size_t>(put));
  if (waiting_.empty()) ended_ ? close() : loop_.unwatch(pipe_.get());
  callbacks_.taken(static_cast<std::size_t>(put));
}

}  // namespace dlrun::agent
