#include "src/agent/stage_in/copy_folder.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "src/base/file.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::agent;
using State = CopyFolder::State;
using Lifetime = CopyFolder::Lifetime;

namespace {

bool is_there(const std::filesystem::path& path) {
  return std::filesystem::exists(path);
}

}  // namespace

TEST_CASE("the first agent fills a copy, others of its run wait, and the last one removes it") {
  const dlrun::test::Folder folder;
  const auto path = folder.path / run_folder_name("n1", "job-1", "data");
  CopyFolder first = CopyFolder::take(path, "job-1", Lifetime::run).value();
  CHECK(first.state() == State::ours);
  CHECK(CopyFolder::take(path, "job-1", Lifetime::run).value().state() == State::of_this_run);
  CHECK(CopyFolder::take(path, "job-2", Lifetime::run).value().state() == State::of_another_run);
  REQUIRE(write_new_file(path / "data", "x"));
  REQUIRE(first.complete());
  CopyFolder second = CopyFolder::take(path, "job-1", Lifetime::run).value();
  CHECK(second.state() == State::complete);
  REQUIRE(first.release());
  CHECK(is_there(path / "data"));
  REQUIRE(second.release());
  CHECK_FALSE(is_there(path));
}

TEST_CASE("a kept copy stays if it is complete, and the next run finds it") {
  const dlrun::test::Folder folder;
  const auto path = folder.path / kept_folder_name("n1", "source", "abc");
  CopyFolder torn = CopyFolder::take(path, "job-1", Lifetime::kept).value();
  REQUIRE(write_new_file(path / "data", "to"));
  REQUIRE(torn.release());
  CHECK_FALSE(is_there(path));
  CopyFolder whole = CopyFolder::take(path, "job-2", Lifetime::kept).value();
  REQUIRE(write_new_file(path / "data", "whole"));
  REQUIRE(whole.complete());
  REQUIRE(whole.release());
  CHECK(CopyFolder::take(path, "job-3", Lifetime::kept).value().state() == State::complete);
  sweep_abandoned(folder.path, "n1");
  CHECK(is_there(path));
  sweep_older(folder.path, "n1", "source", "abc");
  CHECK(is_there(path));
  sweep_older(folder.path, "n1", "source", "def");
  CHECK_FALSE(is_there(path));
}

TEST_CASE(
    "what a killed run has left is removed, with folders that nobody may write to; what is in use stays") {
  const dlrun::test::Folder folder;
  const auto left = folder.path / run_folder_name("n1", "job-1", "data"),
             used = folder.path / run_folder_name("n1", "job-2", "data"),
             others = folder.path / run_folder_name("n2", "job-1", "data");
  for (const auto& path : {left, others}) {
    (void)CopyFolder::take(path, "job-1", Lifetime::run).value();  // its lock goes with it
    std::filesystem::create_directories(path / "data" / "locked");
    REQUIRE(write_new_file(path / "data" / "locked" / "file", "x"));
    ::chmod((path / "data" / "locked").c_str(), 0500);
  }
  const CopyFolder user = CopyFolder::take(used, "job-2", Lifetime::run).value();
  sweep_abandoned(folder.path, "n1");
  CHECK_FALSE(is_there(left));
  CHECK(is_there(used));
  CHECK(is_there(others));
  REQUIRE(remove_if_abandoned(others));
  CHECK_FALSE(is_there(others));
  REQUIRE(remove_if_abandoned(used));
  CHECK(is_there(used));
}

TEST_CASE("the links that a killed run has left go when another run makes its own") {
  const dlrun::test::Folder folder;
  const auto left = folder.path / "dlrun-staged-job-1", used = folder.path / "dlrun-staged-job-2";
  (void)CopyFolder::take(left, "job-1", Lifetime::run).value();  // its lock goes with it
  const CopyFolder user = CopyFolder::take(used, "job-2", Lifetime::run).value();
  sweep_abandoned_links(folder.path / "dlrun-staged-job-3");
  CHECK_FALSE(is_there(left));
  CHECK(is_there(used));
}

TEST_CASE("a link or a file at the place of a copy is refused, and stays as it is") {
  const dlrun::test::Folder folder;
  std::filesystem::create_directory(folder.path / "elsewhere");
  std::filesystem::create_directory_symlink(folder.path / "elsewhere", folder.path / "link");
  const auto taken = CopyFolder::take(folder.path / "link", "job-1", Lifetime::run);
  REQUIRE_FALSE(taken.has_value());
  CHECK(taken.error().what.find("exists, and is not a folder of this user") != std::string::npos);
  REQUIRE(remove_if_abandoned(folder.path / "link"));
  CHECK(is_there(folder.path / "elsewhere"));
}
