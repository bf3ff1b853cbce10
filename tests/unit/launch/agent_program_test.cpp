// A dlrun without its dlrun-agent is told before any node is asked.
#include "src/launch/agent_program.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "tests/unit/folder.hpp"

using namespace dlrun;

TEST_CASE("the agent is the program beside dlrun") {
  const test::Folder folder;
  const Installation own{.bin = folder.path / "bin", .data = {}, .plugins = {}};
  const std::string path = own.agent();
  const auto missing = launch::agent_program(own);
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().kind == ErrorKind::unavailable);
  CHECK(missing.error().text() ==
        "there is no " + path +
            "\n  hint: dlrun starts the dlrun-agent in its own folder: install both, "
            "or run dlrun from where they are");
  folder.write("bin/dlrun-agent", "#!/bin/sh\n");
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  CHECK(launch::agent_program(own).error().text() == path + " cannot be run\n  hint: chmod +x " + path);
  REQUIRE(::chmod(path.c_str(), 0755) == 0);
  CHECK(launch::agent_program(own).value() == path);
}
