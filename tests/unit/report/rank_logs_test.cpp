// Which logs are meant, and what comes new into them.
#include "src/report/rank_logs.hpp"

#include <fstream>

#include <doctest/doctest.h>

#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::report;

namespace {

RunFolder run() {
  const Json ranks = Json::array({{{"rank", 0}, {"role", "ps"}, {"task_index", 0}, {"node", 0}},
                                  {{"rank", 1}, {"role", "worker"}, {"task_index", 0}, {"node", 0}},
                                  {{"rank", 2}, {"role", "worker"}, {"task_index", 1}, {"node", 1}}});
  RunFolder out{.path = "/run", .plan = {}, .allocation = {}, .status = {}, .record = {}};
  out.plan = {{"nodes", Json::array({{{"host", "c1"}}, {{"host", "c2"}}})}, {"ranks", ranks}};
  return out;
}

std::vector<int> ranks_of(const LogChoice& choice) {
  std::vector<int> out;
  const std::vector<RankLog> logs = logs_of(run(), choice).value();
  for (const RankLog& log : logs) out.push_back(log.rank);
  return out;
}

}  // namespace

TEST_CASE("a line without an end is shown in pieces, and never held whole") {
  const test::Folder folder;
  const std::size_t most = LineBuffer::kMaxLine;
  folder.write("log", std::string(3 * most + 5, 'x') + "\nend\n");
  LogReader reader(folder.path / "log");
  std::vector<std::size_t> sizes;
  REQUIRE(reader.read(LogReader::Until::whole_lines,
                      [&](std::string_view line) { sizes.push_back(line.size()); }));
  CHECK(sizes == std::vector<std::size_t>{most, most, most, 5, 3});
}

TEST_CASE("logs are chosen by rank, role and host together") {
  CHECK(ranks_of({}) == std::vector<int>{0, 1, 2});
  CHECK(ranks_of({.ranks = "0,2-9"}) == std::vector<int>{0, 2});
  CHECK(ranks_of({.ranks = "", .role = "worker"}) == std::vector<int>{1, 2});
  CHECK(ranks_of({.ranks = "", .role = "worker", .host = "c2"}) == std::vector<int>{2});
  CHECK(logs_of(run(), {}).value()[2].file == "/run/logs/0002-worker-1.log");
}

TEST_CASE("a choice that fits nothing says what there is") {
  CHECK(logs_of(run(), {.ranks = "7"}).error().hint == "the run has ranks 0 to 2");
  CHECK(logs_of(run(), {.ranks = "one"}).error().what == "--rank: 'one' names no ranks");
  CHECK(logs_of(run(), {.ranks = "3-1"}).error().hint == "write 0-3,7");
  CHECK(logs_of(run(), {.ranks = "", .role = "workr"}).error().hint == "did you mean 'worker'?");
  CHECK(logs_of(run(), {.ranks = "", .role = "", .host = "gpu07"}).error().hint == "valid names: c1, c2");
  RunFolder none = run();
  none.plan = nullptr;
  CHECK(logs_of(none, {}).error().what.find("the ranks are not known") != std::string::npos);
}

TEST_CASE("what was printed since a time begins at the last mark before it") {
  const test::Folder folder;
  const auto times =
      folder.write("times", "2026-11-29T20:00:00Z 0\n2026-11-29T20:00:10Z 100\n2026-11-29T20:00:20Z 250\n20");
  const RankLog log{.rank = 0,
                    .role = {},
                    .task = 0,
                    .host = {},
                    .file = folder.write("log", std::string(300, 'x')),
                    .times = times};
  const auto since = [&](const char* when) { return offset_since(log, since_of(when, {}).value()); };
  CHECK(since("2026-11-29T19:00:00Z") == 0);
  CHECK(since("2026-11-29T20:00:10Z") == 100);
  CHECK(since("2026-11-29T20:00:15Z") == 100);
  CHECK(since("2026-11-29T20:00:29Z") == 250);
  CHECK(since("2026-11-29T20:00:30Z") == 300);  // what was printed then would have a mark of its own
  CHECK(since("2026-11-29T21:00:00Z") == 300);
  CHECK_FALSE(
      offset_since({.rank = 0, .role = {}, .task = 0, .host = {}, .file = log.file, .times = "none"}, {}));
  const Instant now = since_of("2026-11-29T20:10:00Z", {}).value();
  CHECK(now - since_of("10min", now).value() == std::chrono::minutes(10));
  CHECK(since_of("yesterday", now).error().what == "--since: 'yesterday' is not a time");
}

TEST_CASE("a log is read on from where it was, in whole lines until its end") {
  const test::Folder folder;
  LogReader reader(folder.path / "log");
  std::vector<std::string> lines;
  const auto take = [&](std::string_view line) { lines.emplace_back(line); };
  const auto append = [&](const char* text) { std::ofstream(folder.path / "log", std::ios::app) << text; };
  REQUIRE(reader.read(LogReader::Until::whole_lines, take));  // it is not there yet
  append("one\ntw");
  REQUIRE(reader.read(LogReader::Until::whole_lines, take));
  CHECK(lines == std::vector<std::string>{"one"});
  append("o\nthr");
  REQUIRE(reader.read(LogReader::Until::whole_lines, take));
  CHECK(lines == std::vector<std::string>{"one", "two"});
  REQUIRE(reader.read(LogReader::Until::end, take));
  CHECK(lines == std::vector<std::string>{"one", "two", "thr"});
  REQUIRE(reader.read(LogReader::Until::end, take));
  CHECK(lines.size() == 3);
}

TEST_CASE("of a run that is over, a log that is not there was removed, or its rank never started") {
  const test::Folder folder;
  RunFolder over = run();
  over.path = folder.path;
  folder.write("logs/0000-ps-0.log", "");
  over.record = {{"attempts", Json::array({{{"ranks", Json::array({{{"rank", 0}, {"end", "exit code 0"}},
                                                                   {{"rank", 1}, {"end", "exit code 0"}},
                                                                   {{"rank", 2}, {"end", nullptr}}})}}})}};
  const auto logs = logs_of(over, {}).value();
  MissingLogs missing = missing_logs(over, logs);
  CHECK(missing.never_started == std::vector<int>{2});
  REQUIRE(missing.gone.size() == 1);
  CHECK(missing.gone[0].rank == 1);
  over.record = nullptr;  // its head died: nothing tells that rank 2 never started
  CHECK(missing_logs(over, logs).gone.size() == 2);
}
