// The error of a command, as programs read it under --json, and its exit code.
#include "src/cli/error_report.hpp"

#include <doctest/doctest.h>

#include "src/base/json.hpp"

using namespace dlrun;
using cli::asks_for_json;
using cli::error_json;
using cli::exit_code_of;

TEST_CASE("an error under --json has kind, message, place, hint, further lines and exit code") {
  const Error error{.kind = ErrorKind::allocation,
                    .what = "2 of 16 hosts cannot be reached over ssh",
                    .where = "",
                    .hint = "dlrun doctor",
                    .also = {"n03: timeout", "n07: timeout"}};
  CHECK(error_json(error) == Json{{"schema", "dlrun.error/1"},
                                  {"error",
                                   {{"kind", "allocation"},
                                    {"message", "2 of 16 hosts cannot be reached over ssh"},
                                    {"where", nullptr},
                                    {"hint", "dlrun doctor"},
                                    {"also", std::vector<std::string>{"n03: timeout", "n07: timeout"}},
                                    {"exit_code", 66}}}});
}

TEST_CASE("every kind of error has a name and its exit code") {
  for (const auto& [kind, name, code] :
       {std::tuple{ErrorKind::usage, "usage", 64}, std::tuple{ErrorKind::input, "input", 65},
        std::tuple{ErrorKind::allocation, "allocation", 66},
        std::tuple{ErrorKind::unavailable, "unavailable", 69},
        std::tuple{ErrorKind::internal, "internal", 70}, std::tuple{ErrorKind::lost, "lost", 71},
        std::tuple{ErrorKind::io, "io", 74}}) {
    const Json error = error_json({.kind = kind, .what = "x"})["error"];
    CHECK(error["kind"] == name);
    CHECK(error["exit_code"] == code);
    CHECK(error["hint"].is_null());
  }
}

TEST_CASE("a wrong value of a flag is bad usage, a wrong value in a file is malformed input") {
  const auto error = [](const char* where) {
    return Error{.kind = ErrorKind::input, .what = "out of range", .where = where};
  };
  CHECK(exit_code_of(error("--set resources.nodes")) == ExitCode::usage);
  CHECK(error_json(error("--set resources.nodes"))["error"]["kind"] == "usage");
  CHECK(exit_code_of(error("job.yaml:1:1")) == ExitCode::input);
}

TEST_CASE("--json counts among the flags of dlrun, not among the arguments of the program") {
  CHECK(asks_for_json({"plan", "--json", "--no-such-flag"}));
  CHECK_FALSE(asks_for_json({"plan", "job.yaml", "--", "--json"}));
  CHECK_FALSE(asks_for_json({}));
}
