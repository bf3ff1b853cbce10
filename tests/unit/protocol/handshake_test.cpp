#include "src/protocol/handshake.hpp"

#include <random>

#include <doctest/doctest.h>

using namespace dlrun;

namespace {
const AgentIdentity kCard{.names = {"n1", "n1.cluster"}, .addresses = {"10.0.0.1"}, .task = 3};
}

TEST_CASE("head and agent with one token know each other") {
  const Token token = Token::random();
  HeadHandshake head(token);
  AgentHandshake agent(token, kCard);
  const auto card = head.check(agent.answer(head.greeting()).value());
  REQUIRE(card.has_value());
  CHECK(card->names == kCard.names);
  CHECK(card->addresses == kCard.addresses);
  CHECK(card->task == 3);
  CHECK(agent.is_receipt(head.receipt()));
}

TEST_CASE("another token proves nothing, to neither side") {
  const Token token = Token::random(), other = Token::random();
  HeadHandshake head(token);
  AgentHandshake stranger(other, kCard);
  CHECK_FALSE(head.check(stranger.answer(head.greeting()).value()).has_value());
  HeadHandshake impostor(other);
  AgentHandshake agent(token, kCard);
  CHECK_FALSE(impostor.check(agent.answer(impostor.greeting()).value()).has_value());
  CHECK_FALSE(agent.is_receipt(other.proof("head")));
}

TEST_CASE("what was heard in one handshake opens no other") {
  const Token token = Token::random();
  HeadHandshake first(token), second(token);
  AgentHandshake agent(token, kCard);
  const std::string answer = agent.answer(first.greeting()).value();
  CHECK(first.check(answer).has_value());
  CHECK_FALSE(second.check(answer).has_value());
  // A head's receipt is no agent's proof.
  CHECK_FALSE(agent.is_receipt(answer));
}

TEST_CASE("a card that was changed on the way is not taken") {
  const Token token = Token::random();
  HeadHandshake head(token);
  std::string answer = AgentHandshake(token, kCard).answer(head.greeting()).value();
  answer.replace(answer.find("n1"), 2, "n2");
  CHECK_FALSE(head.check(answer).has_value());
}

TEST_CASE("a token is written and read; what is none is refused") {
  const Token token = Token::random();
  CHECK(Token::parse(token.text()).value().proof("x") == token.proof("x"));
  for (const char* text : {"", "abc", "zz", "0123456789abcdef"}) CHECK_FALSE(Token::parse(text).has_value());
  CHECK_FALSE(Token::parse(token.text() + "0").has_value());
}

TEST_CASE("strangers' lines are refused and do no harm") {
  const Token token = Token::random();
  for (const char* line : {"", "{}", "[]", "GET / HTTP/1.1", "{\"card\": 1, \"challenge\": 2, \"proof\": 3}",
                           "null", "{\"card\": {}, \"challenge\": \"\", \"proof\": \"\"}"})
    CHECK_FALSE(HeadHandshake(token).check(line).has_value());
  AgentHandshake agent(token, kCard);
  CHECK_FALSE(agent.answer("SSH-2.0-OpenSSH_9.2p1\r\n").has_value());
  std::mt19937 random(7);
  HeadHandshake head(token);
  const std::string good = agent.answer(head.greeting()).value();
  for (int round = 0; round < 2000; ++round) {
    std::string bad = good;
    for (int flips = 0; flips < 3; ++flips) bad[random() % bad.size()] = static_cast<char>(random());
    if (bad != good) CHECK_FALSE(head.check(bad).has_value());
  }
}
