#include "src/process/listener.hpp"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace dlrun;

TEST_CASE("without a descriptor to spare and a connection to drop, it rests in place of going round") {
  EventLoop loop;
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(socket.get(), 8) == 0);
  socklen_t size = sizeof address;
  REQUIRE(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const UniqueFd caller(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(caller.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);

  int taken = 0, asked = 0;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const Listener listener(loop, std::move(socket),
                          {.connected =
                               [&](UniqueFd) {
                                 ++taken;
                                 loop.stop();
                               },
                           .free_a_place =
                               [&] {
                                 ++asked;
                                 return false;
                               }});
  const int spare = ::dup(0);  // the number that a connection would get
  ::close(spare);
  const rlimit none{static_cast<rlim_t>(spare), before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  loop.after(Listener::kRest * 3.5, [&] { ::setrlimit(RLIMIT_NOFILE, &before); });
  REQUIRE(loop.run().has_value());
  CHECK(taken == 1);
  CHECK(asked >= 1);
  CHECK(asked <= 5);
}
