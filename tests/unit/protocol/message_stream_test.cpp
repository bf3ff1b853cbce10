#include "src/protocol/message_stream.hpp"

#include <algorithm>
#include <csignal>
#include <optional>
#include <random>

#include <doctest/doctest.h>
#include <sys/socket.h>

using namespace dlrun;

TEST_CASE("messages survive any cutting of the stream") {
  const std::string bytes =
      encode({{{"type", "output"}, {"rank", 3}}, std::string("a\0b\n", 4)}) + encode({{{"type", "bye"}}});
  MessageDecoder decoder;
  std::vector<Message> got;
  for (const char byte : bytes) {
    decoder.add({&byte, 1});
    while (auto message = decoder.next().value()) got.push_back(std::move(*message));
  }
  REQUIRE(got.size() == 2);
  CHECK(got[0].header["rank"] == 3);
  CHECK(got[0].body == std::string("a\0b\n", 4));
  CHECK(got[1].type() == "bye");
  CHECK(decoder.empty());
}

TEST_CASE("foreign bytes are refused with the likely reason, before anything is allocated") {
  MessageDecoder decoder;
  decoder.add("Welcome to cluster c1!\n");
  CHECK(decoder.next().error().text().find("shell's start file") != std::string::npos);
}

TEST_CASE("random bytes never crash the decoder") {
  std::mt19937 random(1);
  const std::string good = encode({{{"type", "output"}, {"rank", 3}}, "text"});
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good + good;
    for (int flips = static_cast<int>(random() % 4); flips >= 0; --flips)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(random() % (bytes.size() + 1));
    MessageDecoder decoder;
    decoder.add(bytes);
    for (int i = 0; i < 4; ++i) {
      const auto message = decoder.next();
      if (!message || !*message) break;
    }
  }
}

TEST_CASE("a stream delivers what was queued beyond the socket's buffer, then the end") {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  EventLoop loop;
  std::size_t received = 0;
  std::string end = "open";
  MessageStream reader(loop, UniqueFd(fds[0]), UniqueFd(),
                       {.message = [&](const Message& message) { received += message.body.size(); },
                        .closed = [&](const std::string& reason) { end = reason, loop.stop(); },
                        .drained = {}});
  MessageStream writer(loop, UniqueFd(fds[1]), UniqueFd(),
                       {.message = {}, .closed = {}, .drained = [&] { writer.close(); }});
  for (int i = 0; i < 100; ++i) writer.send({{{"type", "output"}}, std::string(100000, 'x')});
  CHECK(writer.queued() > 0);
  REQUIRE(loop.run().has_value());
  CHECK(received == 10000000);
  CHECK(end.empty());
}

TEST_CASE("what is sent ahead overtakes what waits, keeps its own order and tears nothing") {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  EventLoop loop;
  std::vector<std::string> heard;
  MessageStream reader(loop, UniqueFd(fds[0]), UniqueFd(),
                       {.message = [&](const Message& message) { heard.emplace_back(message.type()); },
                        .closed = [&](const std::string&) { loop.stop(); },
                        .drained = {}});
  MessageStream writer(loop, UniqueFd(fds[1]), UniqueFd(),
                       {.message = {}, .closed = {}, .drained = [&] { writer.close(); }});
  for (int i = 0; i < 20; ++i) writer.send({{{"type", "output"}}, std::string(100000, 'x')});
  writer.send_ahead({{{"type", "first"}}});
  writer.send_ahead({{{"type", "second"}}});
  REQUIRE(loop.run().has_value());
  REQUIRE(heard.size() == 22);
  CHECK(heard.back() == "output");
  const auto first = std::find(heard.begin(), heard.end(), "first");
  REQUIRE(first != heard.end());
  CHECK(*(first + 1) == "second");
}

TEST_CASE("what a peer said before it went is heard, also where we were still writing to it") {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  EventLoop loop;
  std::vector<std::string> heard;
  MessageStream stream(loop, UniqueFd(fds[0]), UniqueFd(),
                       {.message = [&](const Message& message) { heard.emplace_back(message.type()); },
                        .closed = [&](const std::string&) { heard.push_back("closed"), loop.stop(); },
                        .drained = {}});
  const std::string last_words = encode({{{"type", "exited"}}}) + encode({{{"type", "done"}}});
  REQUIRE(::write(fds[1], last_words.data(), last_words.size()) == static_cast<ssize_t>(last_words.size()));
  ::close(fds[1]);
  ::signal(SIGPIPE, SIG_IGN);
  stream.send({{{"type", "bye"}}});
  REQUIRE(loop.run().has_value());
  CHECK(heard == std::vector<std::string>{"exited", "done", "closed"});
}

TEST_CASE("a stream goes on in another loop, with what it has read and what it is still to send") {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  std::vector<std::string> heard;
  std::optional<EventLoop> first(std::in_place);
  EventLoop second;
  MessageStream stream(*first, UniqueFd(fds[0]), UniqueFd(),
                       {.message =
                            [&](const Message& message) {
                              heard.push_back("first " + std::string(message.type()));
                              stream.pause();
                              first->stop();
                            },
                        .closed = {},
                        .drained = {}});
  const std::string done = encode({{{"type", "done"}}}), ready = encode({{{"type", "ready"}}});
  const std::string begun = done + ready.substr(0, 5);
  REQUIRE(::write(fds[1], begun.data(), begun.size()) == static_cast<ssize_t>(begun.size()));
  REQUIRE(first->run().has_value());
  stream.leave_loop();
  first.reset();
  stream.send({{{"type", "slice"}}, std::string(1000000, 'x')});
  CHECK(stream.queued() > 0);
  REQUIRE(::write(fds[1], ready.data() + 5, ready.size() - 5) == static_cast<ssize_t>(ready.size() - 5));
  stream.join_loop(second, {.message = [&](const Message& message) { heard.emplace_back(message.type()); },
                            .closed = {},
                            .drained = [&] { second.stop(); }});
  std::size_t received = 0;
  MessageStream peer(second, UniqueFd(fds[1]), UniqueFd(),
                     {.message = [&](const Message& message) { received = message.body.size(); },
                      .closed = {},
                      .drained = {}});
  REQUIRE(second.run().has_value());
  while (received == 0 || heard.size() < 2) REQUIRE(second.turn().has_value());
  CHECK(received == 1000000);
  CHECK(heard == std::vector<std::string>{"first done", "ready"});
}

TEST_CASE("a stream that is paused reads nothing and loses nothing, and its writer may go meanwhile") {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  EventLoop loop;
  std::vector<std::string> seen;
  MessageStream reader(loop, UniqueFd(fds[0]), UniqueFd(),
                       {.message = [&](const Message& message) { seen.emplace_back(message.type()); },
                        .closed = [&](const std::string&) { loop.stop(); },
                        .drained = {}});
  reader.pause();
  {
    MessageStream writer(loop, UniqueFd(fds[1]), UniqueFd(), {.message = {}, .closed = {}, .drained = {}});
    const auto encoded = std::make_shared<const std::string>(encode({{{"type", "alive"}}}));
    writer.send(encoded);
    writer.send(encoded);
  }
  loop.after(Seconds(0.02), [&] { loop.stop(); });
  REQUIRE(loop.run().has_value());
  CHECK(seen.empty());
  reader.resume();
  REQUIRE(loop.run().has_value());
  CHECK(seen == std::vector<std::string>{"alive", "alive"});
}
