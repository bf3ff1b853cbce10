// The port of a rank: strangers, however many and however quiet, hold nobody up, and learn nothing.
#include "runtime/comm/transport/rank_port.hpp"

#include <future>
#include <memory>

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "runtime/comm/transport/connect_to_rank.hpp"
#include "runtime/comm/transport/rank_proof.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {

namespace {

// A limit that no test waits for: whoever waited for a stranger would stand here until the test is ended.
constexpr StartLimits kLong{.all = std::chrono::hours(1), .proof = std::chrono::hours(1)};

UniqueFd connected(const std::string& address, int port) {
  UniqueFd socket = std::move(*tcp::start_connect(address, port));
  pollfd one{socket.get(), POLLOUT, 0};
  ::poll(&one, 1, -1);
  REQUIRE(tcp::outcome_of(socket.get()));
  tcp::set_blocking(socket.get());
  return socket;
}
int port_in(const std::string& announcement) {
  return std::stoi(split(announcement, ' ')[1]);
}
// Rank 0's announcement with other addresses, and a host that is not this one.
std::string with_addresses(const RankPort& port, const std::string& addresses) {
  const auto words = split(port.announcement(), ' ');
  return fmt::format("{} {} elsewhere {}", words[0], words[1], addresses);
}

// Listens on one address of this host; port 0 takes a free one.
UniqueFd listening(std::uint32_t address, int port) {
  UniqueFd out(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(address);
  REQUIRE(::bind(out.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  REQUIRE(::listen(out.get(), 5) == 0);
  return out;
}
int port_of(const UniqueFd& listener) {
  sockaddr_in bound{};
  socklen_t length = sizeof bound;
  REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &length) == 0);
  return ntohs(bound.sin_port);
}

// Says `text` to the first caller and hears all that this one says.
std::string hear(const UniqueFd& listener, const std::string& text) {
  const UniqueFd caller(::accept(listener.get(), nullptr, nullptr));
  if (!text.empty()) (void)::send(caller.get(), text.data(), text.size(), MSG_NOSIGNAL);
  std::string heard;
  char bytes[256];
  for (ssize_t got = 0; (got = ::recv(caller.get(), bytes, sizeof bytes, 0)) > 0;)
    heard.append(bytes, static_cast<std::size_t>(got));
  return heard;
}
// The first caller is let in as by a rank's port, with that token.
bool let_in(const UniqueFd& listener, const Token& token) {
  const UniqueFd caller(::accept(listener.get(), nullptr, nullptr));
  const PortProof proof(token);
  RankAnswer answer;
  if (!tcp::write_all(caller.get(), std::as_bytes(std::span(&proof.greeting(), 1))) ||
      !tcp::read_all(caller.get(), std::as_writable_bytes(std::span(&answer, 1))))
    return false;
  const auto receipt = proof.check(answer, "n0");
  return receipt && tcp::write_all(caller.get(), std::as_bytes(std::span(&*receipt, 1)));
}

std::string greeting_of_a_port() {
  const PortProof proof(Token::random());
  return {reinterpret_cast<const char*>(&proof.greeting()), sizeof(RankGreeting)};
}

}  // namespace

TEST_CASE("strangers that say nothing or one byte cost nothing once the ranks are there") {
  const RankPort port = std::move(*RankPort::open());
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 60; ++i) {
    strangers.push_back(connected("127.0.0.1", port_in(port.announcement())));
    if (i % 2 == 0) CHECK(::send(strangers.back().get(), "x", 1, MSG_NOSIGNAL) == 1);
  }
  auto ranks = std::async(std::launch::async, [&] { return port.accept({1, 2}, kLong); });
  const auto second = connect_to_rank(2, 0, port.announcement(), kLong);
  const auto first = connect_to_rank(1, 0, port.announcement(), kLong);
  const auto here = ranks.get();
  REQUIRE(first);
  REQUIRE(second);
  REQUIRE(here);
  REQUIRE(here->size() == 2);
  CHECK((*here)[0].rank == 1);
  CHECK((*here)[1].rank == 2);
  CHECK((*here)[0].host == tcp::own_host());
  CHECK(first->name() == "rank 0 on " + tcp::own_host());
}

TEST_CASE("more strangers than a port keeps at once do not keep a rank out") {
  const RankPort port = std::move(*RankPort::open());
  auto ranks = std::async(std::launch::async, [&] { return port.accept({1}, kLong); });
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 300; ++i) strangers.push_back(connected("127.0.0.1", port_in(port.announcement())));
  CHECK(connect_to_rank(1, 0, port.announcement(), kLong));
  CHECK(ranks.get());
}

TEST_CASE("a stranger that only waits is dropped when its time is up") {
  const RankPort port = std::move(*RankPort::open());
  auto ranks = std::async(std::launch::async, [&] {
    return port.accept({1}, {.all = std::chrono::hours(1), .proof = std::chrono::milliseconds(50)});
  });
  const UniqueFd stranger = connected("127.0.0.1", port_in(port.announcement()));
  char bytes[256];
  while (::recv(stranger.get(), bytes, sizeof bytes, 0) > 0) continue;  // until it is closed
  CHECK(connect_to_rank(1, 0, port.announcement(), kLong));
  CHECK(ranks.get());
}

TEST_CASE("ranks that do not come are named, and one with another token is not let in") {
  const RankPort port = std::move(*RankPort::open()), other = std::move(*RankPort::open());
  auto words = split(port.announcement(), ' ');
  words[0] = split(other.announcement(), ' ')[0];
  auto caller = std::async(std::launch::async, [&] {
    return connect_to_rank(1, 0, join(words, " "),
                           {.all = std::chrono::milliseconds(10), .proof = kLong.proof});
  });
  const auto here =
      port.accept({1, 5}, {.all = std::chrono::milliseconds(500), .proof = std::chrono::hours(1)});
  REQUIRE(!here);
  CHECK(here.error().kind == ErrorKind::unavailable);
  CHECK(here.error().what == "2 of 2 ranks have not connected within 0 s: rank 1, 5");
  CHECK(here.error().hint == "check that the nodes reach each other over TCP");
  CHECK(!caller.get());
}

TEST_CASE("a wait for ranks ends when it is shut") {
  const RankPort port = std::move(*RankPort::open());
  auto ranks = std::async(std::launch::async, [&] { return port.accept({1}, kLong); });
  port.shut();
  CHECK(!ranks.get());
}

TEST_CASE("the rank is found behind an address that leads to a stranger, which learns nothing of the token") {
  for (const std::string& text :
       {std::string(), std::string("SSH-2.0-OpenSSH_9.2\r\n"), greeting_of_a_port()}) {
    const UniqueFd rank_0 = listening(INADDR_LOOPBACK, 0),
                   stranger = listening(INADDR_LOOPBACK + 1, port_of(rank_0));
    const Token token = Token::random();
    auto heard = std::async(std::launch::async, [&] { return hear(stranger, text); });
    auto done = std::async(std::launch::async, [&] { return let_in(rank_0, token); });
    const auto found = connect_to_rank(
        1, 0, fmt::format("{} {} n0 127.0.0.2 127.0.0.1", token.text(), port_of(rank_0)), kLong);
    REQUIRE(found);
    CHECK(found->name() == "rank 0 on n0");
    CHECK(done.get());
    CHECK(heard.get().find(token.text()) == std::string::npos);
  }
}

TEST_CASE("ranks reach each other over IPv6") {
  const RankPort port = std::move(*RankPort::open());
  auto ranks = std::async(std::launch::async, [&] { return port.accept({1}, kLong); });
  CHECK(connect_to_rank(1, 0, with_addresses(port, "::1"), kLong));
  CHECK(ranks.get());
}

TEST_CASE("a rank that cannot be reached is named with every address that was tried") {
  const std::string token = Token::random().text();
  const auto found = connect_to_rank(3, 0, token + " 1 n0 127.0.0.1 ::1 n0");
  REQUIRE(!found);
  CHECK(found.error().what ==
        fmt::format("rank 3 on {} cannot reach rank 0 on n0 (port 1)", tcp::own_host()));
  CHECK(found.error().also == std::vector<std::string>{"127.0.0.1: Connection refused",
                                                       "::1: Connection refused",
                                                       "n0: 'n0' is not an IP address"});
  CHECK(connect_to_rank(3, 0, "none").error().what ==
        "rank 0 could not open a port for the other ranks: its log says why");
}

}  // namespace dlrun::runtime
