#include "src/base/file.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

using namespace dlrun;
namespace fs = std::filesystem;

namespace {
struct Folder {
  fs::path path = fs::temp_directory_path() / fmt::format("dlrun-file-test-{}", ::getpid());
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};
}  // namespace

TEST_CASE("a file is replaced whole and leaves nothing beside it") {
  const Folder folder;
  const fs::path file = folder.path / "record.json";
  REQUIRE(replace_file(file, "one", Durability::none).has_value());
  REQUIRE(replace_file(file, "two", Durability::synced).has_value());
  CHECK(*read_file(file) == "two");
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator{}) == 1);
}

TEST_CASE("files that cannot be read or written are errors with path and reason") {
  const Folder folder;
  CHECK(read_file(folder.path / "absent").error().what.ends_with("absent: No such file or directory"));
  CHECK(read_file(folder.path).error().what.ends_with("is a directory"));
  const auto full = replace_file("/proc/no/such", "x", Durability::none);
  REQUIRE_FALSE(full.has_value());
  CHECK(full.error().kind == ErrorKind::io);
}
