#include "runtime/comm/transport/tcp.hpp"

#include <array>
#include <cerrno>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/host_name.hpp"

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

// Sockets of a kernel without IPv6 are IPv4's.
Result<UniqueFd> any_socket(int& family) {
  for (const int each : {AF_INET6, AF_INET}) {
    family = each;
    UniqueFd out(::socket(each, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (out) return out;
  }
  return failed("creating a socket");
}

int bind_anywhere(int socket, int family) {
  if (family == AF_INET) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    return ::bind(socket, reinterpret_cast<const sockaddr*>(&any), sizeof any);
  }
  const int off = 0;
  ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  return ::bind(socket, reinterpret_cast<const sockaddr*>(&any), sizeof any);
}

Result<int> port_of(int socket) {
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &length) != 0)
    return failed("reading the port number");
  return ntohs(bound.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(bound).sin_port
                                          : reinterpret_cast<const sockaddr_in6&>(bound).sin6_port);
}

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

std::optional<SocketAddress> parse_address(const std::string& address, int port) {
  SocketAddress out;
  auto& four = reinterpret_cast<sockaddr_in&>(out.storage);
  auto& six = reinterpret_cast<sockaddr_in6&>(out.storage);
  if (::inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(static_cast<std::uint16_t>(port));
    out.length = sizeof four;
    return out;
  }
  if (::inet_pton(AF_INET6, address.c_str(), &six.sin6_addr) != 1) return std::nullopt;
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(static_cast<std::uint16_t>(port));
  out.length = sizeof six;
  return out;
}

bool is_of_one_link(const sockaddr* address) {
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

// Empty where it is neither IPv4 nor IPv6.
std::string text_of_address(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address->sa_family == AF_INET) bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  if (address->sa_family == AF_INET6) bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (bytes == nullptr || ::inet_ntop(address->sa_family, bytes, text.data(), text.size()) == nullptr)
    return {};
  return text.data();
}

}  // namespace

Result<Listener> listen_anywhere() {
  int family = AF_INET6;
  UniqueFd socket = TRY(any_socket(family));
  if (bind_anywhere(socket.get(), family) != 0) {
    if (family == AF_INET) return failed("binding to a port");
    socket = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket || bind_anywhere(socket.get(), AF_INET) != 0) return failed("binding to a port");
  }
  if (::listen(socket.get(), SOMAXCONN) != 0) return failed("listening");
  const int port = TRY(port_of(socket.get()));
  return Listener{std::move(socket), port};
}

Result<std::optional<UniqueFd>> accept_one(int listener) {
  UniqueFd out(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (out) {
    tune(out.get());
    return out;
  }
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM || errno == EINVAL)
    return failed("accepting a connection");
  return std::optional<UniqueFd>();  // it has gone again
}

Result<UniqueFd> start_connect(const std::string& address, int port) {
  const auto to = parse_address(address, port);
  if (!to) return fail(ErrorKind::unavailable, "'{}' is not an IP address", address);
  UniqueFd out(::socket(to->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!out) return failed("creating a socket");
  if (::connect(out.get(), reinterpret_cast<const sockaddr*>(&to->storage), to->length) != 0 &&
      errno != EINPROGRESS)
    return fail(ErrorKind::unavailable, "{}", system_reason(errno));
  return out;
}

Result<void> outcome_of(int connecting) {
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(connecting, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return fail(ErrorKind::unavailable, "{}", system_reason(error));
  tune(connecting);
  return {};
}

void set_blocking(int socket) {
  ::fcntl(socket, F_SETFL, 0);
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> out;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return out;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0 ||
        is_of_one_link(one->ifa_addr))
      continue;
    if (std::string text = text_of_address(one->ifa_addr); !text.empty()) out.push_back(std::move(text));
  }
  ::freeifaddrs(all);
  return out;
}

std::string own_host() {
  const std::string host = host_name();
  return host.empty() ? "an unknown host" : host;
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
