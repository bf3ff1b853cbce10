// The proof both ways between a rank's port and a rank that connects.
#include "runtime/comm/transport/rank_proof.hpp"

#include <cstring>
#include <string_view>

#include <doctest/doctest.h>

namespace dlrun::runtime {

namespace {

template <class T>
bool holds(const T& message, const std::string& text) {
  return std::string_view(reinterpret_cast<const char*>(&message), sizeof message).find(text) !=
         std::string_view::npos;
}

}  // namespace

TEST_CASE("a rank and a port of one job prove themselves, and no message holds their token") {
  const Token token = Token::random();
  const PortProof port(token);
  CallerProof caller(token, 3, "n3");
  const auto answer = caller.answer(port.greeting());
  REQUIRE(answer);
  CHECK(answer->rank == 3);
  CHECK(text_of(answer->host) == "n3");
  const auto receipt = port.check(*answer, "n0");
  REQUIRE(receipt);
  CHECK(text_of(receipt->host) == "n0");
  CHECK(caller.is_sound(*receipt));
  CHECK_FALSE(holds(port.greeting(), token.text()));
  CHECK_FALSE(holds(*answer, token.text()));
  CHECK_FALSE(holds(*receipt, token.text()));
}

TEST_CASE("whoever has another token, or changes what was proven, is refused") {
  const Token token = Token::random();
  const PortProof port(token);
  CallerProof stranger(Token::random(), 3, "n3");
  CHECK_FALSE(port.check(*stranger.answer(port.greeting()), "n0"));
  CallerProof caller(token, 3, "n3");
  auto answer = *caller.answer(port.greeting());
  answer.rank = 4;
  CHECK_FALSE(port.check(answer, "n0"));
  answer.rank = 3;
  answer.host[0] = 'm';
  CHECK_FALSE(port.check(answer, "n0"));
  CHECK_FALSE(PortProof(token).check(*caller.answer(port.greeting()), "n0"));  // played back to another port
}

TEST_CASE("a port that has not the token cannot pass as the rank") {
  const Token token = Token::random();
  CallerProof caller(token, 3, "n3");
  const PortProof stranger(Token::random());
  REQUIRE(caller.answer(stranger.greeting()));
  CHECK_FALSE(caller.is_sound(RankReceipt{}));
  const PortProof port(token);
  const auto answer = *caller.answer(port.greeting());
  RankReceipt mirrored;
  mirrored.proof = answer.proof;
  CHECK_FALSE(caller.is_sound(mirrored));
  RankGreeting http;
  std::memcpy(http.protocol.data(), "HTTP/1.1 400 Bad", 16);
  CHECK_FALSE(caller.answer(http));
}

TEST_CASE("a host name longer than its place is cut and ends") {
  const Token token = Token::random();
  CallerProof caller(token, 0, std::string(200, 'h'));
  const PortProof port(token);
  CHECK(text_of(caller.answer(port.greeting())->host) == std::string(63, 'h'));
}

}  // namespace dlrun::runtime
