// Whatever comes over a stream, the codec answers with the message that it is or with an Error that has
// words; and what it takes is a message that can be sent on as it came.
#include <doctest/doctest.h>

#include "tests/fuzz/mutate.hpp"
#include "tests/unit/protocol/sample_messages.hpp"

using namespace dlrun;
using namespace dlrun::protocol;

namespace {

std::vector<std::string> frames(test::Direction direction) {
  std::vector<std::string> out;
  for (const test::Sample& sample : test::sample_messages())
    if (sample.direction == direction) out.push_back(sample.header);
  return out;
}

// Damages headers: lengths and bodies are the stream's to check, which has a test of its own.
template <class Decode>
void try_damaged_headers(test::Direction direction, Decode decode) {
  test::Mutator mutator(frames(direction), test::odd_values());
  int taken = 0, refused = 0;
  for (test::Texts texts; texts.next();) {
    const std::string text = mutator.next();
    const auto header = parse_json(text, "fuzz");
    if (!header) continue;
    for (const std::string& body : {std::string(), std::string("abc\0", 4)}) {
      const auto message = decode(Message{*header, body});
      if (!message) {
        ++refused;
        CHECK_FALSE(message.error().what.empty());
        continue;
      }
      ++taken;
      const Message again = encode(*message);
      CHECK(again.body == body);
      CHECK(again.header.size() == header->size());
    }
  }
  CHECK(taken > 0);
  CHECK(refused > 0);
}

}  // namespace

TEST_CASE("a damaged message to an agent is an error with words, or a message") {
  try_damaged_headers(test::Direction::to_agent, [](Message m) { return decode_to_agent(std::move(m)); });
}

TEST_CASE("a damaged message from an agent is an error with words, or a message") {
  try_damaged_headers(test::Direction::from_agent, [](Message m) { return decode_from_agent(std::move(m)); });
}
