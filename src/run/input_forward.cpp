#include "src/run/input_forward.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <poll.h>
#include <unistd.h>

namespace dlrun::job {

void InputForward::begin() {
  if (state_ != State::waits) return;
  state_ = State::reads;
  loop_.watch(fd_, POLLIN, [this](short) { read_ready(); });
}

void InputForward::stop() {
  if (state_ == State::reads) loop_.unwatch(fd_);
  state_ = State::over;
}

void InputForward::read_ready() {
  std::array<char, 16384> chunk;
  const std::size_t room = std::min(chunk.size(), kMaxOnTheWay - on_the_way_);
  const ssize_t got = ::read(fd_, chunk.data(), room);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    stop();
    return callbacks_.end();
  }
  on_the_way_ += static_cast<std::size_t>(got);
  if (on_the_way_ == kMaxOnTheWay) loop_.unwatch(fd_);
  callbacks_.send(std::string(chunk.data(), static_cast<std::size_t>(got)));
}

void InputForward::taken(std::size_t bytes) {
  on_the_way_ -= std::min(bytes, on_the_way_);
  if (state_ == State::reads && on_the_way_ < kMaxOnTheWay)
    loop_.watch(fd_, POLLIN, [this](short) { read_ready(); });
}

}  // namespace dlrun::job
