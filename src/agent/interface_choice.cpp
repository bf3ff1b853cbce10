#include "src/agent/interface_choice.hpp"

#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/core.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "src/base/unique_fd.hpp"

namespace dlrun::agent {
namespace {

constexpr const char* kPort = "9";  // discard: mostly nobody listens there, and a refusal is an answer, too

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;
using InterfaceList = std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)>;

AddressList addresses_of(const std::string& peer) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(peer.c_str(), kPort, &hints, &found) != 0) found = nullptr;
  return {found, &::freeaddrinfo};
}

bool same_address(const sockaddr& a, const sockaddr_storage& b) {
  if (a.sa_family != b.ss_family) return false;
  if (a.sa_family == AF_INET)
    return std::memcmp(&reinterpret_cast<const sockaddr_in&>(a).sin_addr,
                       &reinterpret_cast<const sockaddr_in&>(b).sin_addr, sizeof(in_addr)) == 0;
  return a.sa_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<const sockaddr_in6&>(a).sin6_addr,
                     &reinterpret_cast<const sockaddr_in6&>(b).sin6_addr, sizeof(in6_addr)) == 0;
}

std::optional<std::string> interface_of(const sockaddr_storage& address) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return std::nullopt;
  const InterfaceList list(all, &::freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next)
    if (one->ifa_addr != nullptr && same_address(*one->ifa_addr, address)) return one->ifa_name;
  return std::nullopt;
}

// The interface from which this address answered.
std::optional<std::string> reach(const addrinfo& address, Seconds timeout) {
  const UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return std::nullopt;
  int problem = ::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  // The kernel has chosen our side by now; after a refusal it would have forgotten it.
  const bool known = ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0;
  if (problem == EINPROGRESS) {
    pollfd waiting{.fd = fd.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(timeout.count() * 1000)) != 1) return std::nullopt;
    socklen_t length = sizeof problem;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &problem, &length) != 0) return std::nullopt;
  }
  if (!known || (problem != 0 && problem != ECONNREFUSED)) return std::nullopt;
  return interface_of(own);
}

}  // namespace

InterfaceChoice interface_towards(const std::vector<std::string>& peers, Seconds timeout) {
  InterfaceChoice out;
  for (const std::string& peer : peers) {
    std::optional<std::string> found;
    const AddressList list = addresses_of(peer);
    for (const addrinfo* one = list.get(); one != nullptr && !found; one = one->ai_next)
      found = reach(*one, timeout);
    if (!found) return {.name = {}, .why_not = fmt::format("{} did not answer", peer)};
    if (out.name && *out.name != *found)
      return {
          .name = {},
          .why_not = fmt::format("the others are behind different interfaces, {} and {}", *out.name, *found)};
    out.name = std::move(found);
  }
  return out;
}

}  // namespace dlrun::agent
