#include "src/process/listener.hpp"

#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace dlrun {

Listener::Listener(EventLoop& loop, UniqueFd socket, Callbacks callbacks)
    : loop_(loop), socket_(std::move(socket)), callbacks_(std::move(callbacks)) {
  watch();
}

Listener::~Listener() {
  loop_.unwatch(socket_.get());
  if (resting_) loop_.cancel(*resting_);
}

void Listener::watch() {
  loop_.watch(socket_.get(), POLLIN, [this](short) { take_one(); });
}

void Listener::take_waiting() {
  constexpr int kMax = 256;  // whoever connects without end is taken by the loop
  for (int i = 0; i < kMax && !resting_ && take_one(); ++i) {
  }
}

bool Listener::take_one() {
  UniqueFd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection) {
    callbacks_.connected(std::move(connection));
    return true;
  }
  const bool full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
  if (full && !callbacks_.free_a_place()) rest();
  return false;
}

void Listener::rest() {
  loop_.unwatch(socket_.get());
  resting_ = loop_.after(kRest, [this] {
    resting_.reset();
    watch();
  });
}

}  // namespace dlrun
