#include "src/protocol/agent_port.hpp"

#include <array>
#include <cerrno>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "src/base/file.hpp"
#include "src/process/listening_socket.hpp"
#include "src/process/socket_option.hpp"

namespace dlrun {
namespace {

constexpr std::size_t kMaxUnproven = 256;  // beyond it the oldest goes; a real agent calls again
constexpr Seconds kTimeout{10};
}  // namespace

Result<std::unique_ptr<AgentPort>> AgentPort::open(EventLoop& loop, const Token& token, Arrived arrived) {
  UniqueFd listener = TRY(listen_on_any_port());
  const Port port = port_of(listener);
  return std::unique_ptr<AgentPort>(
      new AgentPort(loop, token, std::move(arrived), std::move(listener), port));
}

AgentPort::AgentPort(EventLoop& loop, const Token& token, Arrived arrived, UniqueFd listener, Port port)
    : loop_(loop),
      token_(token),
      arrived_(std::move(arrived)),
      port_(port),
      listener_(loop, std::move(listener),
                {.connected = [this](UniqueFd fd) { add(std::move(fd)); },
                 // If no descriptor is free, the oldest unproven connection is dropped.
                 .free_a_place =
                     [this] {
                       if (callers_.empty()) return false;
                       drop(callers_.begin());
                       return true;
                     }}) {}

AgentPort::~AgentPort() {
  while (!callers_.empty()) drop(callers_.begin());
}

void AgentPort::add(UniqueFd fd) {
  if (callers_.size() >= kMaxUnproven) drop(callers_.begin());
  const Place caller = callers_.insert(callers_.end(), {std::move(fd), HeadHandshake(token_)});
  caller->deadline = loop_.after(kTimeout, [this, caller] { drop(caller); });
  loop_.watch(caller->fd.get(), POLLIN, [this, caller](short) { read_from(caller); });
  const std::string greeting = caller->handshake.greeting();
  (void)!::send(caller->fd.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL);  // a new socket has room
}

void AgentPort::drop(Place caller) {
  loop_.cancel(caller->deadline);
  loop_.unwatch(caller->fd.get());
  callers_.erase(caller);
}

void AgentPort::read_from(Place caller) {
  std::array<char, 4096> chunk;
  const ssize_t got = ::read(caller->fd.get(), chunk.data(), chunk.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return drop(caller);
  caller->line.append(chunk.data(), static_cast<std::size_t>(got));
  const std::size_t end = caller->line.find('\n');
  if (end == std::string::npos && caller->line.size() < kMaxHandshakeLine) return;
  // An agent says nothing more before it has the receipt.
  if (end + 1 != caller->line.size()) return drop(caller);
  finish(caller, caller->line.substr(0, end));
}

void AgentPort::finish(Place caller, const std::string& line) {
  const auto card = caller->handshake.check(line);
  if (!card) return drop(caller);
  const std::string& receipt = caller->handshake.receipt();
  if (::send(caller->fd.get(), receipt.data(), receipt.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(receipt.size()))
    return drop(caller);
  loop_.cancel(caller->deadline);
  loop_.unwatch(caller->fd.get());
  UniqueFd fd = std::move(caller->fd);
  callers_.erase(caller);
  // A node that is lost without closing its connection is noticed by the kernel too, besides the heartbeats.
  set_option(fd.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  arrived_(*card, std::move(fd));
}

}  // namespace dlrun
