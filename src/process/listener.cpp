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

void Listener::take_one() {
  UniqueFd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection) return callbacks_.connected(std::move(connection));
  const bool full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
  if (full && !callbacks_.free_a_place()) rest();
}

void Listener::rest() {
  loop_.unwatch(socket_.get());
  resting_ = loop_.after(kRest, [this] {
    resting_.reset();
    watch();
  });
}

}  // namespace dlrun
