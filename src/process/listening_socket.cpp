#include "src/process/listening_socket.hpp"

#include <cerrno>

#include <netinet/in.h>
#include <sys/socket.h>

#include "src/base/file.hpp"
#include "src/process/socket_option.hpp"

namespace dlrun {
namespace {

constexpr int kBacklog = 4096;

}  // namespace

Result<UniqueFd> listen_on_any_port() {
  UniqueFd six(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (six) {
    set_option(six.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    if (::bind(six.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0 &&
        ::listen(six.get(), kBacklog) == 0)
      return six;
  }
  UniqueFd four(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  if (!four || ::bind(four.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 ||
      ::listen(four.get(), kBacklog) != 0)
    return fail(ErrorKind::unavailable, "cannot open a TCP port for the agents: {}", system_reason(errno));
  return four;
}

// It stands at the same place in both families' addresses.
Port port_of(const UniqueFd& socket) {
  sockaddr_in6 address{};
  socklen_t length = sizeof address;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return Port(ntohs(address.sin6_port));
}

}  // namespace dlrun
