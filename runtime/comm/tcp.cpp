#include "runtime/comm/tcp.hpp"

#include <array>
#include <cerrno>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/file.hpp"

namespace dlrun::runtime::tcp {

namespace {

tl::unexpected<Error> failed(const char* what) {
  return fail(ErrorKind::unavailable, "{} failed: {}", what, system_reason(errno));
}

// Small messages leave at once; a peer whose machine died is given up after about 20 s of silence.
void tune(int socket) {
  const int on = 1, idle = 5, between = 5, probes = 3;
  const unsigned silence = 20'000;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence, sizeof silence);
}

bool ready(int socket, short what, int milliseconds) {
  pollfd one{socket, what, 0};
  int got = 0;
  do got = ::poll(&one, 1, milliseconds);
  while (got < 0 && errno == EINTR);
  return got == 1;
}

}  // namespace

bool ready_within(int socket, int milliseconds) {
  return ready(socket, POLLIN, milliseconds);
}

Result<Listener> listen_anywhere() {
  Listener out{UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), 0};
  if (!out.socket) return failed("making a socket");
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_ANY);
  if (::bind(out.socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0)
    return failed("taking a port");
  if (::listen(out.socket.get(), SOMAXCONN) != 0) return failed("listening");
  socklen_t length = sizeof any;
  if (::getsockname(out.socket.get(), reinterpret_cast<sockaddr*>(&any), &length) != 0)
    return failed("asking for the port");
  out.port = ntohs(any.sin_port);
  return out;
}

Result<UniqueFd> accept_within(int listener, int milliseconds) {
  if (!ready(listener, POLLIN, milliseconds))
    return fail(ErrorKind::unavailable, "no peer came within {} s", milliseconds / 1000);
  UniqueFd out(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!out) return failed("accepting a peer");
  tune(out.get());
  return out;
}

Result<UniqueFd> connect_within(const std::string& address, int port, int milliseconds) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1)
    return fail(ErrorKind::unavailable, "'{}' is no IPv4 address", address);
  UniqueFd out(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!out) return failed("making a socket");
  if (::connect(out.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 && errno != EINPROGRESS)
    return failed("connecting");
  if (!ready(out.get(), POLLOUT, milliseconds))
    return fail(ErrorKind::unavailable, "{}:{} does not answer within {} s", address, port,
                milliseconds / 1000);
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(out.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return fail(ErrorKind::unavailable, "{}:{}: {}", address, port, system_reason(error));
  ::fcntl(out.get(), F_SETFL, 0);
  tune(out.get());
  return out;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> out;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return out;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    const bool usable = one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET &&
                        (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    std::array<char, INET_ADDRSTRLEN> text{};
    if (usable && ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr,
                              text.data(), text.size()) != nullptr)
      out.emplace_back(text.data());
  }
  ::freeifaddrs(all);
  return out;
}

std::string own_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "an unknown host";
  return name.data();
}

bool write_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

bool read_all(int socket, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace dlrun::runtime::tcp
