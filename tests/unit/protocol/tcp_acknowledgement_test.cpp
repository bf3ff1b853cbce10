#include "src/protocol/tcp_acknowledgement.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/unique_fd.hpp"

using namespace dlrun;

TEST_CASE("a machine may acknowledge nothing for a third of the time that its program may be silent") {
  CHECK(acknowledge_limit(Seconds(15)).count() == 5);
  CHECK(acknowledge_limit(Seconds(60)).count() == 20);
  CHECK(acknowledge_limit(Seconds(2)).count() == 3);
}

TEST_CASE("a reader that is stopped is still acknowledged by its machine, also when its buffer is full") {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof here;
  REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&here), &length) == 0);
  const UniqueFd writer(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(writer.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0);
  const UniqueFd reader(::accept(listener.get(), nullptr, nullptr));
  const std::string text(1 << 20, 'x');
  while (::send(writer.get(), text.data(), text.size(), MSG_DONTWAIT) > 0) {
  }
  CHECK(unacknowledged_for(writer.get()).count() == 0);
}

TEST_CASE("what is no TCP connection has nothing to acknowledge") {
  CHECK(unacknowledged_for(STDIN_FILENO).count() == 0);
  CHECK(unacknowledged_for(-1).count() == 0);
}
