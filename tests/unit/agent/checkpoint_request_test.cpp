#include "src/agent/checkpoint_request.hpp"

#include <csignal>

#include <doctest/doctest.h>

#include "src/base/json.hpp"

using namespace dlrun;
using namespace dlrun::agent;
using protocol::to_agent::RequestCheckpoint;

TEST_CASE("a request to stop says so by the channel and by the file") {
  const RequestCheckpoint request{.stop = true, .control = true, .file = true, .signal = SIGTERM};
  CHECK(to_text(control_line(request)) == R"({"checkpoint":"now","stop":true})");
  CHECK(file_content(request) == "stop\n");
}

TEST_CASE("a checkpoint in between asks nobody to stop") {
  const RequestCheckpoint request{.stop = false, .control = true};
  CHECK(to_text(control_line(request)) == R"({"checkpoint":"now"})");
  CHECK(file_content(request) == "go on\n");
}

TEST_CASE("who dies of the asking signal has not failed; who dies of another has") {
  CHECK(died_of_request({.exit_code = 0, .signal = SIGTERM}, SIGTERM));
  CHECK(died_of_request({.exit_code = 143}, SIGTERM));  // a shell's word for it
  CHECK(!died_of_request({.exit_code = 0, .signal = SIGSEGV}, SIGTERM));
  CHECK(!died_of_request({.exit_code = 1}, SIGTERM));
  CHECK(!died_of_request({.exit_code = 0, .signal = SIGTERM}, 0));  // nobody asked
}
