#include "src/agent/checkpoint_request.hpp"

#include <csignal>

#include <doctest/doctest.h>

#include "src/base/json.hpp"

using namespace dlrun;
using namespace dlrun::agent;

TEST_CASE("only the ways that the message names are gone") {
  const CheckpointRequest nothing = read_checkpoint_request(Json{{"type", "checkpoint"}});
  CHECK(!nothing.control);
  CHECK(!nothing.file);
  CHECK(nothing.signal == 0);
  const CheckpointRequest all = read_checkpoint_request(
      Json{{"type", "checkpoint"}, {"stop", true}, {"control", true}, {"file", true}, {"signal", SIGTERM}});
  CHECK(all.control);
  CHECK(all.file);
  CHECK(all.signal == SIGTERM);
  CHECK(to_text(control_line(all)) == R"({"checkpoint":"now","stop":true})");
  CHECK(file_content(all) == "stop\n");
}

TEST_CASE("a checkpoint in between asks nobody to stop") {
  const CheckpointRequest request = read_checkpoint_request(Json{{"stop", false}, {"control", true}});
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
