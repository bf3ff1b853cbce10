#include "src/base/log.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "src/base/file.hpp"
#include "src/base/type_name.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;

TEST_CASE("a log that nobody asks for is off, makes no file and no text") {
  const test::Folder folder;
  const auto file = folder.path / "head.log";
  CHECK(log::open("", file).has_value());
  CHECK_FALSE(log::is_on());
  log::debug("a line of {}", 1);
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("a log that is asked for has its lines, with the time, once it is closed") {
  const test::Folder folder;
  const auto file = folder.path / "head.log";
  REQUIRE(log::open("debug", file).has_value());
  CHECK(log::is_on());
  for (int i = 0; i < 100; ++i) log::debug("a line of {}", i);
  log::close();
  CHECK_FALSE(log::is_on());
  log::debug("too late");
  const std::string text = *read_file(file.string());
  CHECK(text.find("Z ") != std::string::npos);
  CHECK(text.ends_with("a line of 99\n"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 100);
}

TEST_CASE("a level that is unknown, and a file that cannot be made, are errors") {
  const test::Folder folder;
  CHECK(log::open("loud", folder.path / "head.log").error().what == "DLRUN_LOG: unknown value 'loud'");
  CHECK(log::open("debug", "/proc/none/head.log").error().what.find("/proc/none") != std::string::npos);
  CHECK_FALSE(log::is_on());
}

TEST_CASE("a type's name in the log has no namespaces") {
  CHECK(type_name<dlrun::Error>() == "Error");
  CHECK(type_name<int>() == "int");
}
