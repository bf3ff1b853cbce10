// What is read of a run directory, also while it is written and after its head died.
#include "src/report/run_folder.hpp"

#include <doctest/doctest.h>

#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::report;

TEST_CASE("a folder is a run, a submission or a chain by its files") {
  const test::Folder folder;
  CHECK(kind_of(folder.path) == FolderKind::none);
  folder.write("submit/job.sh", "#!/bin/bash\n");
  folder.write("submit/spec.json", "{}");
  CHECK(kind_of(folder.path / "submit") == FolderKind::submission);
  folder.write("submit/chain.json", "{}");
  CHECK(kind_of(folder.path / "submit") == FolderKind::chain);
  folder.write("run/status.json", "{}");
  CHECK(kind_of(folder.path / "run") == FolderKind::run);
  CHECK(kind_of("/nowhere") == FolderKind::none);
  CHECK(read_run_folder(folder.path / "submit").error().what.find("is no run directory") !=
        std::string::npos);
}

TEST_CASE("what is not there is null, and what does not read is said") {
  const test::Folder folder;
  folder.write("plan.json", R"({"name": "small"})");
  folder.write("record.json", "{\"name\": ");
  const RunFolder run = read_run_folder(folder.path).value();
  CHECK(run.plan.at("name") == "small");
  CHECK(run.allocation.is_null());
  CHECK(run.record.is_null());
  REQUIRE(run.problems.size() == 1);
  CHECK(run.problems[0].find("record.json") != std::string::npos);
  CHECK(read_run_folder(folder.path, Depth::brief).value().plan.is_null());
}

TEST_CASE("a line that is just being written does not count") {
  const test::Folder folder;
  folder.write("events.jsonl", "{\"event\":\"planned\"}\nnot json\n[1]\n{\"event\":\"sta");
  const JsonLines events = read_json_lines(folder.path / "events.jsonl").value();
  REQUIRE(events.values.size() == 1);
  CHECK(events.values[0].at("event") == "planned");
  CHECK(events.unreadable == 2);
  CHECK(events.last == LastLine::torn);
  const JsonLines none = read_json_lines(folder.path / "nothing/events.jsonl").value();
  CHECK(none.values.empty());
  CHECK(none.last == LastLine::whole);
}

TEST_CASE("events that cannot be read are a problem of the run") {
  const test::Folder folder;
  folder.write("events.jsonl", "{\"event\":\"planned\"}\nnot json\n[1]\n{\"event\":\"started\"}\n");
  std::vector<std::string> problems;
  CHECK(read_events(folder.path, problems).size() == 2);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].ends_with("events.jsonl: 2 of 4 lines could not be read"));
}

TEST_CASE("lines longer than a piece of the file come whole") {
  const test::Folder folder;
  const std::string line(200'000, 'x');
  std::vector<std::size_t> lengths;
  const auto last = for_each_line(folder.write("lines", line + "\n\n" + line + "\n"),
                                  [&](std::string_view text) { lengths.push_back(text.size()); });
  CHECK(last.value() == LastLine::whole);
  CHECK(lengths == std::vector<std::size_t>{200'000, 0, 200'000});
}

TEST_CASE("the links of a chain, oldest first") {
  const test::Folder folder;
  for (const char* name : {"link-0002", "link-0001"}) folder.write(std::string(name) + "/plan.json", "{}");
  folder.write("link-0003/other", "");
  const auto links = link_directories(folder.path);
  REQUIRE(links.size() == 2);
  CHECK(links[0].filename() == "link-0001");
}

TEST_CASE("lines are taken whole, however the pieces of a file cut them") {
  std::string begun;
  std::vector<std::string> lines;
  for (const char* const piece : {"a", "bc\n\nde", "", "f", "\ng\nh"})
    report::take_lines(begun, piece, [&](std::string_view line) { lines.emplace_back(line); });
  CHECK(lines == std::vector<std::string>{"abc", "", "def", "g"});
  CHECK(begun == "h");
}
