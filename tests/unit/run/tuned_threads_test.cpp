// What is remembered of threads, by the model of the processors and the cores of a rank.
#include "src/run/tuned_threads.hpp"

#include <doctest/doctest.h>

#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::test;

TEST_CASE("threads are remembered for a model and a number of cores") {
  const Folder folder;
  const Environment environment = Environment::from_entries({"XDG_STATE_HOME=" + folder.path.string()});
  const job::TunedThreads memory(environment);
  CHECK_FALSE(memory.any());
  CHECK(memory.of("A/B 7").empty());
  REQUIRE(memory.remember("A/B 7", 68, 64));
  REQUIRE(memory.remember("A/B 7", 34, 32));
  REQUIRE(memory.remember("A/B 7", 68, 66));
  CHECK(memory.any());
  CHECK(memory.of("A/B 7") == std::map<int, int>{{34, 32}, {68, 66}});
  CHECK(memory.of("other").empty());
  REQUIRE(memory.remember("other", 8, 7));
  CHECK(memory.all().size() == 2);
}

TEST_CASE("a file that cannot be read counts as forgotten") {
  const Folder folder;
  const Environment environment = Environment::from_entries({"XDG_STATE_HOME=" + folder.path.string()});
  const job::TunedThreads memory(environment);
  for (const char* text : {"", "{", "[]", R"({"threads": 3})",
                           R"({"cpu": "M", "threads": {"x": 1, "0": 1, "4": -1, "8": 99999999}})"}) {
    folder.write("dlrun/threads/M.json", text);
    CHECK(memory.of("M").empty());
  }
}
