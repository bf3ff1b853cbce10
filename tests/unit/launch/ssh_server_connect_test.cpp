#include <thread>

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "src/launch/ssh/server_connect.hpp"

using namespace dlrun;
using namespace dlrun::launch;

namespace {

Ticks in(Seconds time) {
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<Ticks::duration>(time);
}

// A port on this machine.
struct LocalServer {
  UniqueFd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  Port port{0};
  explicit LocalServer(int backlog) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    if (backlog > 0) REQUIRE(::listen(fd.get(), backlog) == 0);
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port = Port(ntohs(address.sin_port));
  }
  // Takes one caller, says `word` to it and hangs up.
  std::thread answer(std::string word) const {
    return std::thread([this, word] {
      const UniqueFd caller(::accept(fd.get(), nullptr, nullptr));
      (void)!::send(caller.get(), word.data(), word.size(), MSG_NOSIGNAL);
    });
  }
};

Result<Reached> reach(const LocalServer& listener, const std::string& word) {
  const Alarm alarm;
  std::thread server = listener.answer(word);
  auto reached = reach_server("127.0.0.1", listener.port, Seconds(60), alarm, in(Seconds(60)));
  server.join();
  return reached;
}

}  // namespace

TEST_CASE("a server that greets is reached; one that hangs up has too many callers") {
  const LocalServer listener(8);
  CHECK_FALSE(reach(listener, "SSH-2.0-x\r\n").value().turned_away);
  CHECK(reach(listener, "").value().turned_away);
  CHECK(reach(listener, "Exceeded MaxStartups\r\n").value().turned_away);
}

TEST_CASE("a port where nobody listens is refused, with the port") {
  const LocalServer nobody(0);
  const Alarm alarm;
  const auto reached = reach_server("127.0.0.1", nobody.port, Seconds(60), alarm, in(Seconds(60)));
  REQUIRE_FALSE(reached);
  CHECK(reached.error().what == fmt::format("port {}: Connection refused", nobody.port.get()));
}

TEST_CASE("a server that says nothing is given up after its limit") {
  const LocalServer silent(8);
  const Alarm alarm;
  const auto reached = reach_server("127.0.0.1", silent.port, Seconds(0.05), alarm, in(Seconds(60)));
  REQUIRE_FALSE(reached);
  CHECK(reached.error().what.find("its ssh server sent nothing within") != std::string::npos);
}

TEST_CASE("the alarm ends every wait, and can be silenced") {
  const Alarm alarm;
  CHECK(wait_for(-1, 0, alarm, in(Seconds(0.01))) == Wake::late);
  alarm.ring();
  CHECK(wait_for(-1, 0, alarm, in(Seconds(3600))) == Wake::alarm);
  alarm.silence();
  CHECK(wait_for(-1, 0, alarm, in(Seconds(0.01))) == Wake::late);
}
