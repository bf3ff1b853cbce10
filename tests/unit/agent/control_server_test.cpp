#include "src/agent/control_server.hpp"

#include <cstring>
#include <random>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/json.hpp"

using namespace dlrun;

namespace {

struct Server {
  std::string path = fmt::format("/tmp/control-test-{}", ::getpid());
  EventLoop loop;
  std::vector<std::string> reports, logs;
  std::unique_ptr<agent::ControlServer> server =
      agent::ControlServer::start(path, loop,
                                  {.report =
                                       [this](Rank rank, const Json& report) {
                                         reports.push_back(fmt::format("{} {}", rank, to_text(report)));
                                       },
                                   .log = [this](const std::string& text) { logs.push_back(text); }})
          .value();
  ~Server() { ::unlink(path.c_str()); }

  UniqueFd connect() {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    REQUIRE(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    return fd;
  }
  // Sends, and serves until everything was received.
  void say(const UniqueFd& fd, const std::string& text) {
    REQUIRE(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
    serve_pending();
  }
  void serve_pending() {
    for (int i = 0; i < 4; ++i) {
      loop.after(Seconds(0), [] {});
      REQUIRE(loop.turn().has_value());
    }
  }
};

}  // namespace

TEST_CASE("a rank says who it is, then reports; requests reach it") {
  Server server;
  const UniqueFd rank = server.connect();
  server.say(rank, "{\"rank\": 3}\n{\"step\": 7, \"loss\": 0.5}\n");
  CHECK(server.reports == std::vector<std::string>{R"(3 {"rank":3})", R"(3 {"step":7,"loss":0.5})"});
  server.server->tell_all({{"checkpoint", "now"}});
  char heard[64] = {};
  REQUIRE(::read(rank.get(), heard, sizeof heard) > 0);
  CHECK(std::string(heard) == "{\"checkpoint\":\"now\"}\n");
}

TEST_CASE("what a rank reported right before its end is told with its end, without a turn of the loop") {
  Server server;
  const UniqueFd other = server.connect();
  server.say(other, "{\"rank\": 1}\n");
  server.reports.clear();
  const std::string whole = "{\"rank\": 0}\n{\"result\": {\"a\": 1}}\n", others = "{\"step\": 1}\n";
  {
    const UniqueFd rank = server.connect();
    REQUIRE(::send(rank.get(), whole.data(), whole.size(), MSG_NOSIGNAL) > 0);
    REQUIRE(::send(other.get(), others.data(), others.size(), MSG_NOSIGNAL) > 0);
  }
  server.server->ended(Rank(0));
  CHECK(server.reports == std::vector<std::string>{R"(0 {"rank":0})", R"(0 {"result":{"a":1}})"});
  server.serve_pending();
  CHECK(server.reports.back() == R"(1 {"step":1})");
}

TEST_CASE("an invalid report ends its own connection alone") {
  Server server;
  const UniqueFd good = server.connect();
  server.say(good, "{\"rank\": 0}\n");
  for (const char* line : {"hello\n", "[1]\n", "{\"step\": 1}\n", "{\"rank\": \"x\"}\n"}) {
    const UniqueFd bad = server.connect();
    server.say(bad, line);
    server.serve_pending();
  }
  CHECK(server.logs.size() == 4);
  server.say(good, "{\"step\": 2}\n");
  CHECK(server.reports.size() == 2);
}

TEST_CASE("random bytes do not crash it") {
  Server server;
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const UniqueFd fd = server.connect();
    std::string bytes = "{\"rank\": 1, \"step\": 5}\n{\"saved\": 1}\n";
    for (int flips = 0; flips < 4; ++flips) bytes[random() % bytes.size()] = static_cast<char>(random());
    server.say(fd, bytes);
  }
}

TEST_CASE("a report that is nested too deeply ends its connection, and the server lives on") {
  Server server;
  const UniqueFd hostile = server.connect();
  server.say(hostile, "{\"rank\": 1, \"x\": " + std::string(5000, '[') + std::string(5000, ']') + "}\n");
  CHECK(server.reports.empty());
  REQUIRE_FALSE(server.logs.empty());
  CHECK(server.logs.back().starts_with("control channel: nested "));
  CHECK(server.logs.back().find(": {\"rank\": 1") != std::string::npos);
  const UniqueFd rank = server.connect();
  server.say(rank, "{\"rank\": 2, \"loss\": {\"by-head\": [1, 2]}}\n");
  CHECK(server.reports.size() == 1);
}

TEST_CASE("brackets in a text are text, and do not make a deep report a flat one") {
  Server server;
  const UniqueFd rank = server.connect();
  server.say(rank, "{\"rank\": 0, \"phase\": \"reading [[[[[[[[[[[[[[[[[[{{{ data\"}\n{\"result\": 1}\n");
  CHECK(server.reports.size() == 2);
  CHECK(server.logs.empty());
  const UniqueFd hostile = server.connect();
  server.say(hostile, "{\"rank\": 1, \"x\": \"" + std::string(300, ']') +
                          "\", \"result\": " + std::string(40, '[') + std::string(40, ']') + "}\n");
  CHECK(server.reports.size() == 2);
  CHECK(server.logs.size() == 1);
}

TEST_CASE(
    "without a descriptor to spare, the connection that is missed least makes room, or the server rests") {
  Server server;
  const UniqueFd rank = server.connect();
  server.say(rank, "{\"rank\": 0}\n");
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  std::vector<UniqueFd> flood;
  for (int i = 0; i < 8; ++i) flood.push_back(server.connect());
  server.serve_pending();
  server.serve_pending();
  // New connections wait in the backlog: ours are there already, its own ones need numbers past the limit.
  std::vector<UniqueFd> later;
  for (int i = 0; i < 4; ++i) later.push_back(server.connect());
  const rlimit none{static_cast<rlim_t>(later.front().get()), before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  for (int i = 0; i < 20; ++i) server.serve_pending();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  server.say(rank, "{\"step\": 1}\n");
  CHECK(server.reports.size() == 2);
  char byte = 0;
  int dropped = 0;
  for (const UniqueFd& fd : flood) dropped += ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0 ? 1 : 0;
  CHECK(dropped == 4);
}

TEST_CASE("a rank that connects after the request to stop hears it, too") {
  Server server;
  const UniqueFd early = server.connect();
  server.say(early, "{\"rank\":0}\n");
  CHECK(server.server->listeners() == 1);
  server.server->tell_all(Json{{"checkpoint", "now"}});  // no request to stop: not kept
  server.server->tell_all(Json{{"checkpoint", "now"}, {"stop", true}});
  const UniqueFd late = server.connect();
  server.serve_pending();
  char text[256] = {};
  const ssize_t got = ::recv(late.get(), text, sizeof text - 1, MSG_DONTWAIT);
  REQUIRE(got > 0);
  CHECK(std::string(text) == "{\"checkpoint\":\"now\",\"stop\":true}\n");
}
