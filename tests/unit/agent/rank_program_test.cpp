#include "src/agent/rank_program.hpp"

#include <filesystem>

#include <doctest/doctest.h>

using namespace dlrun;
using agent::program_behind_env;

namespace {
std::string behind_env(const Argv& argv) {
  Environment environment;
  environment.set("PATH", "/nowhere:/usr/bin:/bin");
  return program_behind_env(argv, environment, "/");
}
const std::string kSleep = std::filesystem::canonical("/bin/sleep").string();
}  // namespace

TEST_CASE("what env starts is named in env's place") {
  CHECK(behind_env({"/usr/bin/env", "sleep", "./train.py"}) == kSleep);
  CHECK(behind_env({"env", "-i", "-u", "HOME", "A=b", "sleep", "1"}) == kSleep);
  CHECK(behind_env({"env", "PATH=/nowhere", "sleep", "1"}).empty());
  CHECK(behind_env({"env", "-S", "sleep -u", "./train.py"}) == kSleep);
  CHECK(behind_env({"/usr/bin/env", "-S sleep  -u", "./train.py"}) == kSleep);
  CHECK(behind_env({"env", "-vS", "-i A=b sleep", "1"}) == kSleep);
  CHECK(behind_env({"env", "/bin/sleep"}) == kSleep);
}

TEST_CASE("env that starts nothing names nothing") {
  CHECK(behind_env({"env"}).empty());
  CHECK(behind_env({"env", "A=b"}).empty());
  CHECK(behind_env({"env", "no-such-program-of-ours"}).empty());
}
