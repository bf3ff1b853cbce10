#include "src/agent/port_claims.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "src/agent/port_holder.hpp"
#include "src/base/file.hpp"

namespace dlrun::agent {
namespace {

// A socket that is bound and never listens. With SO_REUSEADDR it may share the port with what is left of
// connections that ended (TIME_WAIT), but with no socket that lives.
int bind_to(UniqueFd& fd, int port, int family, int reuse) {
  fd.reset(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno;
  const int off = 0;
  if (reuse != 0) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(static_cast<std::uint16_t>(port));
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = six.sin6_port;
  if (family == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  const int bound = family == AF_INET6
                        ? ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&six), sizeof six)
                        : ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&four), sizeof four);
  return bound == 0 ? 0 : errno;
}

// Both IPv4 and IPv6, on every address; IPv4 alone where the machine has no other.
int bind_everywhere(UniqueFd& fd, int port, int reuse) {
  const int error = bind_to(fd, port, AF_INET6, reuse);
  return error == EAFNOSUPPORT || error == EADDRNOTAVAIL ? bind_to(fd, port, AF_INET, reuse) : error;
}

// What only ended connections use may be used; nobody can bind it beside us once they are gone. While
// somebody listens there, or has it without SO_REUSEADDR, it is taken.
int hold(UniqueFd& fd, int port) {
  const int error = bind_everywhere(fd, port, 0);
  return error == EADDRINUSE ? bind_everywhere(fd, port, 1) : error;
}

// Two agents that step into the leavings of ended connections could both bind the port: sockets with
// SO_REUSEADDR that do not listen may share it. So each marks what it holds by a name that goes with it; such
// names are one set for each network, as ports are.
int mark(UniqueFd& fd, int port) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = fmt::format("dlrun-port-{}", port);
  std::memcpy(name.sun_path + 1, text.data(), text.size());  // a leading NUL: no file
  fd.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), length) == 0 ? 0 : errno;
}

}  // namespace

Result<std::vector<PortClaims::Taken>> PortClaims::claim(const std::vector<int>& ports) {
  std::erase_if(held_, [&](const auto& held) {
    return std::find(ports.begin(), ports.end(), held.first) == ports.end();
  });
  std::vector<Taken> taken;
  for (const int port : ports) {
    if (held_.contains(port)) continue;
    Held held;
    int error = mark(held.mark, port);
    if (error == 0) error = hold(held.port, port);
    if (error == 0)
      held_[port] = std::move(held);
    else if (error == EADDRINUSE || error == EACCES)
      taken.push_back(
          {port, error == EACCES ? "the system, which does not give it to us" : port_holder(port)});
    else
      return fail(ErrorKind::unavailable, "cannot look whether port {} is free: {}", port,
                  system_reason(error));
  }
  return taken;
}

}  // namespace dlrun::agent
