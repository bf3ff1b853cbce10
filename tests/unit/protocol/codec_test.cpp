#include "src/protocol/codec.hpp"

#include <csignal>
#include <set>

#include <doctest/doctest.h>

#include "src/base/version.hpp"
#include "tests/unit/protocol/sample_messages.hpp"

using namespace dlrun;
using namespace dlrun::protocol;
using namespace dlrun::test;

namespace {

// What decoding says of a message with this header and body: the Error's text, or the name of what came out.
std::string refusal_of(Direction direction, const Json& header, const std::string& body) {
  if (direction == Direction::to_agent) {
    const auto message = decode_to_agent({header, body});
    return message ? std::string(name_of(*message)) : message.error().text();
  }
  const auto message = decode_from_agent({header, body});
  return message ? std::string(name_of(*message)) : message.error().text();
}

Message encode_again(const Sample& sample) {
  const Message message{*parse_json(sample.header, "sample"), sample.body};
  if (sample.direction == Direction::to_agent) {
    const auto decoded = decode_to_agent(message);
    REQUIRE_MESSAGE(decoded.has_value(), sample.header);
    return encode(*decoded);
  }
  const auto decoded = decode_from_agent(message);
  REQUIRE_MESSAGE(decoded.has_value(), sample.header);
  return encode(*decoded);
}

// The refusal of the sample of this type once `change` has been made to its header.
template <class Change>
std::string refusal(Direction direction, std::string_view type, Change change) {
  for (const Sample& sample : sample_messages()) {
    Json header = *parse_json(sample.header, "sample");
    if (sample.direction != direction || header["type"] != type) continue;
    change(header);
    return refusal_of(direction, header, sample.body);
  }
  return "no sample";
}
std::string refusal_with(Direction direction, std::string_view type, const std::string& name,
                         const Json& value) {
  return refusal(direction, type, [&](Json& header) { header[name] = value; });
}
constexpr Direction kToAgent = Direction::to_agent, kFromAgent = Direction::from_agent;

}  // namespace

TEST_CASE("every message has a form on the stream, and comes back as it was") {
  for (const Sample& sample : sample_messages()) {
    CHECK(to_text(sample.message.header) == sample.header);
    CHECK(sample.message.body == sample.body);
    const Message again = encode_again(sample);
    CHECK(to_text(again.header) == sample.header);
    CHECK(again.body == sample.body);
  }
}

TEST_CASE("the samples are all messages that there are, each under a name of its own") {
  std::set<std::string> to, from;
  for (const Sample& sample : sample_messages())
    (sample.direction == kToAgent ? to : from).emplace(sample.message.type());
  CHECK(to.size() == std::variant_size_v<ToAgentTypes::Variant>);
  CHECK(from.size() == std::variant_size_v<FromAgentTypes::Variant>);
}

TEST_CASE("a message without one of its fields is refused, with the name of both") {
  int tried = 0;
  for (const Sample& sample : sample_messages()) {
    const Json whole = *parse_json(sample.header, "sample");
    for (const auto& member : whole.items()) {
      if (member.key() == "type") continue;
      Json header = whole;
      header.erase(member.key());
      CHECK(refusal_of(sample.direction, header, sample.body) ==
            fmt::format("message '{}': field '{}' is missing", sample.message.type(), member.key()));
      ++tried;
    }
  }
  CHECK(tried > 50);
}

TEST_CASE("a field of another type is refused, with the value seen") {
  for (const Sample& sample : sample_messages()) {
    const Json whole = *parse_json(sample.header, "sample");
    for (const auto& member : whole.items()) {
      if (member.key() == "type") continue;
      Json header = whole;
      // No member is either: a list of lists, or text where a list or an object is wanted.
      const bool structured = member.value().is_structured();
      header[member.key()] = structured ? Json("seven") : Json::array({Json::array()});
      CHECK(refusal_of(sample.direction, header, sample.body) ==
            fmt::format("message '{}': field '{}' has the wrong type: {}", sample.message.type(),
                        member.key(), structured ? "\"seven\"" : "a list"));
    }
  }
}

TEST_CASE("a message with a field too many is refused") {
  for (const Sample& sample : sample_messages()) {
    Json header = *parse_json(sample.header, "sample");
    header["more"] = 1;
    CHECK(refusal_of(sample.direction, header, sample.body) ==
          fmt::format("message '{}': field 'more' is unknown", sample.message.type()));
  }
}

TEST_CASE("a body where there is none is refused") {
  CHECK(refusal_of(kToAgent, {{"type", "go"}}, "x") == "message 'go': its body is not empty");
  CHECK(refusal_of(kFromAgent, {{"type", "done"}}, "x") == "message 'done': its body is not empty");
}

TEST_CASE("an unknown message is refused by its name; each side has its own") {
  CHECK(refusal_of(kToAgent, {{"type", "dance"}}, "") == "unknown message 'dance'");
  CHECK(refusal_of(kToAgent, {{"type", "done"}}, "") == "unknown message 'done'");
  CHECK(refusal_of(kFromAgent, {{"type", "bye"}}, "") == "unknown message 'bye'");
  CHECK(decode_to_agent({{{"type", "dance"}}}).error().kind == ErrorKind::internal);
}

TEST_CASE("numbers out of range are refused, with the range") {
  CHECK(refusal_with(kToAgent, "claim", "ports", {2220, 65536}) ==
        "message 'claim': field 'ports' is out of range [1, 65535]: 65536");
  CHECK(refusal_with(kToAgent, "claim", "ports", {0}) ==
        "message 'claim': field 'ports' is out of range [1, 65535]: 0");
  CHECK(refusal_with(kToAgent, "slice", "input", -1) ==
        "message 'slice': field 'input' is out of range [0, 2147483647]: -1");
  CHECK(refusal_with(kToAgent, "checkpoint", "signal", 65) ==
        "message 'checkpoint': field 'signal' is out of range [0, 64]: 65");
  CHECK(refusal_with(kFromAgent, "ready", "pid", 0) ==
        "message 'ready': field 'pid' is out of range [1, 2147483647]: 0");
  CHECK(refusal_with(kFromAgent, "started", "rank", 2147483648) ==
        "message 'started': field 'rank' is out of range [0, 2147483647]: 2147483648");
  CHECK(refusal_with(kFromAgent, "exited", "code", 256) ==
        "message 'exited': field 'code' is out of range [0, 255]: 256");
  CHECK(refusal_with(kFromAgent, "failed", "code", 0) ==
        "message 'failed': field 'code' is out of range [1, 255]: 0");
  CHECK(refusal_with(kFromAgent, "signalled", "signal", 0) ==
        "message 'signalled': field 'signal' is out of range [1, 64]: 0");
  CHECK(refusal_with(kFromAgent, "clean", "strays", -1) ==
        "message 'clean': field 'strays' is out of range [0, 4294967295]: -1");
  CHECK(refusal_with(kFromAgent, "input_taken", "bytes", 18446744073709551615u) ==
        "message 'input_taken': field 'bytes' is out of range [0, 4294967295]: 18446744073709551615");
  CHECK(refusal_with(kFromAgent, "error", "kind", 7) ==
        "message 'error': field 'kind' is out of range [0, 6]: 7");
  CHECK(refusal_with(kFromAgent, "told_to_end", "sender", 3) ==
        "message 'told_to_end': field 'sender' is out of range [0, 2]: 3");
  CHECK(refusal_with(kFromAgent, "prolog", "seconds", -0.5) ==
        "message 'prolog': field 'seconds' is out of range [0, infinity): -0.5");
}

TEST_CASE("a number that is no integer is refused, not cut") {
  CHECK(refusal_with(kFromAgent, "failed", "code", 3.7) ==
        "message 'failed': field 'code' has the wrong type: 3.7");
  CHECK(refusal_with(kFromAgent, "failed", "code", true) ==
        "message 'failed': field 'code' has the wrong type: true");
}

TEST_CASE("names that a field does not know are refused") {
  CHECK(refusal_with(kToAgent, "stop", "urgency", "soon") ==
        "message 'stop': field 'urgency' has the unknown value \"soon\"");
  CHECK(refusal_with(kFromAgent, "output", "stream", "log") ==
        "message 'output': field 'stream' has the unknown value \"log\"");
}

TEST_CASE("an object inside of a message is read as strictly") {
  CHECK(refusal(kFromAgent, "probed", [](Json& header) { header["ranks"][0].erase("pid"); }) ==
        "message 'probed': field 'ranks' is malformed: field 'pid' is missing");
  CHECK(refusal(kFromAgent, "probed", [](Json& header) { header["ranks"][0]["state"] = "running"; }) ==
        "message 'probed': field 'ranks' is malformed: field 'state' has the wrong type: \"running\"");
  CHECK(refusal(kFromAgent, "claimed", [](Json& header) { header["taken"][0]["more"] = 1; }) ==
        "message 'claimed': field 'taken' is malformed: field 'more' is unknown");
  CHECK(refusal(kFromAgent, "inventory", [](Json& header) {
          header["inventory"]["cpus"] = 0;
        }).starts_with("message 'inventory': field 'inventory' is malformed: "));
}

TEST_CASE("the sizes of an allgather's parts must be those of its body") {
  const Json header{{"type", "allgathered"}, {"key", "k"}, {"sizes", {1, 2}}};
  CHECK(refusal_of(kToAgent, header, "abc") == "allgathered");
  CHECK(refusal_of(kToAgent, header, "ab") ==
        "message 'allgathered': field 'sizes' says more than the body has");
  CHECK(refusal_of(kToAgent, header, "abcd") ==
        "message 'allgathered': field 'sizes' says less than the body has");
  Json huge = header;
  huge["sizes"] = {4294967295u, 4294967295u};
  CHECK(refusal_of(kToAgent, huge, "abc") ==
        "message 'allgathered': field 'sizes' says more than the body has");
}

TEST_CASE("an environment's entries may have any byte but NUL, which ends each") {
  const ToAgent message = to_agent::Environment{{"A=1\n2", "EMPTY=", "B=\xff"}};
  const auto back = decode_to_agent(encode(message));
  REQUIRE(back.has_value());
  CHECK(std::get<to_agent::Environment>(*back).entries == std::get<to_agent::Environment>(message).entries);
  const auto none = decode_to_agent(encode(to_agent::Environment{}));
  REQUIRE(none.has_value());
  CHECK(std::get<to_agent::Environment>(*none).entries.empty());
  CHECK(refusal_of(kToAgent, {{"type", "environment"}}, "A=1") ==
        "message 'environment': the last of the 'entries' has no end");
}

TEST_CASE("an agent of this version is welcome; another is a version mismatch, however little it says") {
  const std::string ours(dlrun::kVersion);
  CHECK(check_version(from_agent::Ready{.pid = 1, .version = ours, .protocol = protocol::kVersion})
            .has_value());
  const auto other = check_version(from_agent::Ready{.pid = 1, .version = "0.0.1", .protocol = 1});
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().what == "version mismatch: dlrun-agent 0.0.1, dlrun " + ours);
  CHECK(other.error().kind == ErrorKind::unavailable);
  const auto old = check_version(Message{{{"type", "ready"}, {"pid", 1}, {"version", "0.0.1"}}});
  REQUIRE_FALSE(old.has_value());
  CHECK(old.error().what == "version mismatch: dlrun-agent 0.0.1, dlrun " + ours);
  const auto mute = check_version(Message{{{"type", "ready"}}});
  REQUIRE_FALSE(mute.has_value());
  CHECK(mute.error().what == "version mismatch: dlrun-agent of an unknown version, dlrun " + ours);
  const auto build = check_version(from_agent::Ready{.pid = 1, .version = ours, .protocol = 0});
  REQUIRE_FALSE(build.has_value());
  CHECK(build.error().what ==
        fmt::format("version mismatch: dlrun-agent {} (protocol 0), dlrun {} (protocol {})", ours, ours,
                    protocol::kVersion));
  CHECK(check_version(Message{{{"type", "alive"}}}).has_value());
}
