#include "runtime/train/arguments.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::runtime;

TEST_CASE("the flags of dlrun-train") {
  CHECK(parse_arguments({"--config", "a.json"})->config == "a.json");
  CHECK(parse_arguments({"--config=a.json", "--check"})->action == Arguments::Action::check);
  CHECK(parse_arguments({"--check-settings", "--config=a"})->action == Arguments::Action::check_settings);
  CHECK(parse_arguments({"--check", "--ranks", "8", "--config=a"})->ranks == 8);
  CHECK(parse_arguments({"--check", "--ranks", "8", "--tensor", "2", "--config=a"})->model().tensor.parts ==
        2);
  CHECK(parse_arguments({"--check", "--ranks", "8", "--pipeline", "4", "--config=a"})->ranks_of_model() == 4);
  CHECK(parse_arguments({"--check", "--ranks", "2", "--tensor", "2", "--sequence", "--config=a"})
            ->model()
            .tensor.slices());
  CHECK(parse_arguments({"--check", "--config=a"})->ranks_of_model() == 1);
  CHECK(parse_arguments({"--version"})->action == Arguments::Action::version);
  CHECK(parse_arguments({"--help"})->action == Arguments::Action::help);
}

TEST_CASE("anything else is an error of usage") {
  const auto refusal = [](const std::vector<std::string>& words) {
    const auto parsed = parse_arguments(words);
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().kind == ErrorKind::usage);
    return parsed.error().text();
  };
  CHECK(refusal({}) == "--config FILE is missing\n  hint: dlrun-train --help");
  CHECK(refusal({"--config"}).starts_with("--config needs a file"));
  CHECK(refusal({"--config", "a", "--config", "b"}).starts_with("--config is given twice"));
  CHECK(refusal({"--check", "--ranks", "0", "--config", "a"})
            .starts_with("--ranks: '0' is not a number of ranks"));
  CHECK(refusal({"--ranks", "8", "--config", "a"}).starts_with("--ranks needs --check"));
  CHECK(refusal({"--tensor", "2", "--config", "a"}).starts_with("--tensor needs --check"));
  CHECK(refusal({"--sequence", "--config", "a"}).starts_with("--sequence needs --check"));
  CHECK(refusal({"--chek"}) == "unknown argument '--chek'\n  hint: did you mean '--check'?");
}
