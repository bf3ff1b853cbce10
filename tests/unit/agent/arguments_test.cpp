// What launchers may say to dlrun-agent.
#include "src/agent/arguments.hpp"

#include <doctest/doctest.h>

namespace dlrun::agent {

TEST_CASE("without a flag the stream is stdin and stdout") {
  const auto arguments = read_arguments({});
  REQUIRE(arguments);
  CHECK(arguments->head.empty());
  CHECK(read_arguments({"--hold", "/tmp/copy"})->hold == "/tmp/copy");
}

TEST_CASE("a head is called at any of its addresses") {
  const auto arguments = read_arguments({"--head", "10.0.0.1,login", "--port", "7", "--token", "/run/t"});
  REQUIRE(arguments);
  CHECK(arguments->head == std::vector<std::string>{"10.0.0.1", "login"});
  CHECK(arguments->port == Port(7));
  CHECK(arguments->token_file == "/run/t");
  CHECK(read_arguments({"--head", "login", "--port", "7"})->token_file.empty());
}

TEST_CASE("what is no command line of a launcher is a usage error") {
  using Words = std::vector<std::string>;
  for (const Words& words :
       {Words{"agent"}, Words{"--head"}, Words{"--head", "a"}, Words{"--token", "t"},
        Words{"--head", "a", "--port", "0", "--token", "t"},
        Words{"--head", "a", "--port", "70000", "--token", "t"}, Words{"--port", "7", "--token", "t"},
        Words{"--hold", ""}, Words{"--unknown", "x"}, Words{"--help", "x"}}) {
    const auto arguments = read_arguments(words);
    REQUIRE_FALSE(arguments);
    CHECK(arguments.error().kind == ErrorKind::usage);
  }
  CHECK(read_arguments({"--haed"}).error().what == "unknown flag '--haed'");
  CHECK(read_arguments({"--head"}).error().what == "--head has no value");
}

TEST_CASE("a person gets an answer, a launcher an agent") {
  CHECK(answer_to_person({"--version"})->starts_with("dlrun-agent 0."));
  CHECK(answer_to_person({"--help"})->starts_with("Usage: dlrun-agent [--head"));
  CHECK(answer_to_person({"-h"}) == answer_to_person({"--help"}));
  CHECK_FALSE(answer_to_person({}).has_value());
  CHECK_FALSE(answer_to_person({"--hold", "--help"}).has_value());
}

}  // namespace dlrun::agent
