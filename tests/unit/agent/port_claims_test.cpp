#include "src/agent/port_claims.hpp"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace dlrun;
using namespace dlrun::agent;

namespace {

// A server on `port` of the loopback address, 0 for any; -1 where it cannot be.
UniqueFd listen_at(int port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), 1) != 0)
    fd.reset();
  return fd;
}

int port_of(const UniqueFd& fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

}  // namespace

TEST_CASE("a port that is held cannot be had by others until it is released") {
  UniqueFd free = listen_at(0);
  const int port = port_of(free);
  free.reset();
  PortClaims claims;
  CHECK(claims.claim({port})->empty());
  CHECK_FALSE(listen_at(port));  // though it asks with SO_REUSEADDR
  claims.release(port);
  CHECK(listen_at(port));
}

TEST_CASE("a port that another listens on is reported with his name") {
  const UniqueFd other = listen_at(0);
  PortClaims claims;
  const auto taken = claims.claim({port_of(other)});
  REQUIRE(taken);
  REQUIRE(taken->size() == 1);
  CHECK(taken->front().port == port_of(other));
  CHECK(taken->front().by.starts_with(fmt::format("process {} (", ::getpid())));
}

TEST_CASE("a second claim lets go of what it does not name") {
  UniqueFd one = listen_at(0), two = listen_at(0);
  const int first = port_of(one), second = port_of(two);
  one.reset();
  two.reset();
  PortClaims claims;
  CHECK(claims.claim({first, second})->empty());
  CHECK(claims.claim({second})->empty());
  CHECK(claims.size() == 1);
  CHECK(listen_at(first));
  CHECK_FALSE(listen_at(second));
}

TEST_CASE("two do not hold one port, also where ended connections have left theirs in it") {
  int port = 0;
  {
    const UniqueFd server = listen_at(0);
    port = port_of(server);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    UniqueFd served(::accept(server.get(), nullptr, nullptr));
    served.reset();  // who closes first keeps the port in TIME_WAIT
  }
  PortClaims first, second;
  CHECK(first.claim({port})->empty());
  CHECK(second.claim({port})->size() == 1);
  first.release(port);
  CHECK(second.claim({port})->empty());
}
