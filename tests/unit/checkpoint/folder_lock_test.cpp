#include "runtime/checkpoint/folder_lock.hpp"

#include <doctest/doctest.h>

#include "tests/unit/data/support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;

TEST_CASE("a checkpoint folder has one run at a time") {
  const test::Folder folder;
  {
    const auto first = FolderLock::take(folder.path, Seconds(0));
    REQUIRE(first.has_value());
    const auto second = FolderLock::take(folder.path, Seconds(0));
    REQUIRE_FALSE(second.has_value());
    CHECK(second.error().kind == ErrorKind::io);
    CHECK(second.error().what == "another run is using this checkpoint folder");
  }
  CHECK(FolderLock::take(folder.path, Seconds(0)).has_value());
}
