#include "src/protocol/agent_port.hpp"

#include <atomic>
#include <thread>

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/protocol/call_agent_port.hpp"

using namespace dlrun;
using namespace dlrun;

namespace {

const AgentIdentity kCard{.names = {"n3"}, .addresses = {}, .task = {}};

struct Head {
  EventLoop loop;
  Token token = Token::random();
  std::vector<std::string> arrived;
  std::vector<UniqueFd> streams;
  std::unique_ptr<AgentPort> port =
      AgentPort::open(loop, token, [this](const AgentIdentity& card, UniqueFd fd) {
        arrived.push_back(card.names.front());
        streams.push_back(std::move(fd));
        loop.stop();
      }).value();

  // Serves until the next agent has proved itself.
  void await_one() { REQUIRE(loop.run().has_value()); }
  // Serves what has arrived.
  void serve_pending() {
    for (int i = 0; i < 20; ++i) {
      loop.after(Seconds(0.005), [] {});
      REQUIRE(loop.turn().has_value());
    }
  }
};

UniqueFd stranger(Port port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port.get());
  REQUIRE(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return fd;
}

// Whether the head has hung up on it.
bool is_dropped(const UniqueFd& fd) {
  char bytes[4096];
  ssize_t got = 0;
  while ((got = ::recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
  }
  return got == 0 || errno == ECONNRESET;
}

}  // namespace

TEST_CASE("an agent with the token gets its stream") {
  Head head;
  Result<UniqueFd> stream = fail(ErrorKind::internal, "not called");
  std::thread agent([&] {
    stream = call_agent_port("the head", {"127.0.0.1"}, head.port->port(), head.token, kCard, Seconds(60));
  });
  head.await_one();
  agent.join();
  REQUIRE(stream.has_value());
  CHECK(head.arrived == std::vector<std::string>{"n3"});
  REQUIRE(::write(head.streams[0].get(), "x", 1) == 1);
  char byte = 0;
  CHECK(::read(stream->get(), &byte, 1) == 1);
}

TEST_CASE("an address that leads nowhere is passed over") {
  Head head;
  Result<UniqueFd> stream = fail(ErrorKind::internal, "not called");
  std::thread agent([&] {
    stream = call_agent_port("the head", {"no-such-host.invalid", "127.0.0.1"}, head.port->port(), head.token,
                             kCard, Seconds(60));
  });
  head.await_one();
  agent.join();
  CHECK(stream.has_value());
}

TEST_CASE("a caller without the token is rejected, and learns why") {
  Head head;
  Result<UniqueFd> stream = fail(ErrorKind::internal, "not called");
  std::atomic<bool> ended = false;
  std::thread agent([&] {
    stream =
        call_agent_port("the head", {"127.0.0.1"}, head.port->port(), Token::random(), kCard, Seconds(0));
    ended = true;
  });
  while (!ended) head.serve_pending();
  agent.join();
  CHECK(head.arrived.empty());
  REQUIRE_FALSE(stream.has_value());
  CHECK(stream.error().also == std::vector<std::string>{"127.0.0.1: it hung up"});
}

TEST_CASE("garbage, floods and silence are dropped, and agents are still accepted") {
  Head head;
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 300; ++i)
    silent.push_back(stranger(head.port->port()));  // more than may wait at a time
  const UniqueFd garbage = stranger(head.port->port()), flood = stranger(head.port->port());
  REQUIRE(::send(garbage.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL) == 18);
  const std::string much(1 << 20, 'x');
  (void)!::send(flood.get(), much.data(), much.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  for (int i = 0; i < 20; ++i) head.serve_pending();
  CHECK(is_dropped(garbage));
  CHECK(is_dropped(flood));
  CHECK(is_dropped(silent.front()));  // the oldest was dropped for others
  CHECK(head.arrived.empty());
  Result<UniqueFd> stream = fail(ErrorKind::internal, "not called");
  std::thread agent([&] {
    stream = call_agent_port("the head", {"127.0.0.1"}, head.port->port(), head.token, kCard, Seconds(60));
  });
  head.await_one();
  agent.join();
  CHECK(stream.has_value());
}
