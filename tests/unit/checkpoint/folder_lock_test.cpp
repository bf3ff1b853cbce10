#include "runtime/checkpoint/folder_lock.hpp"

#include <doctest/doctest.h>

#include "tests/unit/data/support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;

TEST_CASE("a checkpoint folder has one run at a time") {
  const test::Folder folder;
  int waits = 0;
  const auto count = [&] { ++waits; };
  {
    const auto first = FolderLock::take(folder.path, Seconds(0), count);
    REQUIRE(first.has_value());
    CHECK(waits == 0);
    const auto second = FolderLock::take(folder.path, Seconds(0.1), count);
    CHECK(waits == 1);  // told once, however long it waited
    REQUIRE_FALSE(second.has_value());
    CHECK(second.error().kind == ErrorKind::io);
    CHECK(second.error().what == "another run is using this checkpoint folder");
  }
  CHECK(FolderLock::take(folder.path, Seconds(0), count).has_value());
}
