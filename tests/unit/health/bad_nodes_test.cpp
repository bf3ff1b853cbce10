#include "src/health/bad_nodes.hpp"

#include <fstream>

#include <doctest/doctest.h>

#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::health;

namespace {

Instant at(int seconds) {
  return Instant(std::chrono::duration_cast<Milliseconds>(Seconds(1'700'000'000 + seconds)));
}

std::string hosts(const BadNodes& memory, int now) {
  std::string out;
  for (const BadNode& node : memory.all(at(now))) out += node.host + " ";
  return out;
}

}  // namespace

TEST_CASE("bad nodes are remembered until their time, per cluster, and can be forgotten") {
  const test::Folder folder;
  const Environment environment = Environment::from_entries({"XDG_STATE_HOME=" + folder.path.string()});
  const BadNodes memory(environment, "slurm-a"), other(environment, "slurm-b");
  REQUIRE(memory.remember({"n3", "space: full", at(100)}));
  REQUIRE(memory.remember({"n1", "clock", at(50)}));
  REQUIRE(memory.remember({"n3", "space: still full", at(200)}));
  CHECK(hosts(memory, 0) == "n1 n3 ");
  CHECK(memory.all(at(0)).back().reason == "space: still full");
  CHECK(hosts(other, 0).empty());
  CHECK(hosts(memory, 60) == "n3 ");
  CHECK_FALSE(std::filesystem::exists(*memory.folder() / "n1.json"));
  memory.forget("n3");
  CHECK(hosts(memory, 60).empty());
}

TEST_CASE("a damaged file counts as forgotten, and a name stays in the folder") {
  const test::Folder folder;
  const Environment environment = Environment::from_entries({"HOME=" + folder.path.string()});
  const BadNodes memory(environment, "../up");
  CHECK(memory.folder() == folder.path / ".local/state/dlrun/bad-nodes/_.._up");
  REQUIRE(memory.remember({"../n1", "", at(100)}));
  std::ofstream(*memory.folder() / "n2.json") << "{";
  CHECK(hosts(memory, 0) == "../n1 ");
}
