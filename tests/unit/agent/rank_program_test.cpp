#include "src/agent/rank_program.hpp"

#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include "tests/unit/folder.hpp"

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

TEST_CASE("a program that is gone already is named by its file and that file's first line") {
  Environment environment;
  environment.set("PATH", "/usr/bin:/bin");
  const test::Folder folder;
  const auto started_by = [&](const char* first_line) {
    const std::string script = (folder.path / "script").string();
    std::ofstream(script) << first_line << "\ntrue\n";
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    return agent::program_started_by({"./script"}, environment, folder.path.string());
  };
  CHECK(started_by("#!/usr/bin/env sleep") == kSleep);
  CHECK(started_by("#!/usr/bin/env -S sleep -u") == kSleep);
  CHECK(started_by("#! /bin/sleep 1") == kSleep);
  CHECK(started_by("no script").ends_with(folder.path.filename().string() + "/script"));
  CHECK(agent::program_started_by({"sleep", "1"}, environment, "/") == kSleep);
  CHECK(agent::program_started_by({"no-such-program-of-ours"}, environment, "/").empty());
}

TEST_CASE("env that starts nothing names nothing") {
  CHECK(behind_env({"env"}).empty());
  CHECK(behind_env({"env", "A=b"}).empty());
  CHECK(behind_env({"env", "no-such-program-of-ours"}).empty());
}
