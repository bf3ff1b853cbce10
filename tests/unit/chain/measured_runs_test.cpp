// Which earlier run the planner of chains uses.
#include "src/chain/measured_runs.hpp"

#include <doctest/doctest.h>

#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::job;

namespace {

const MeasureWanted kWanted{.name = "flowers", .framework = "builtin", .ranks = 2};

Json record(int ranks, double step, Json checkpoint) {
  const Json timing{{"start", 2},
                    {"steps", 50},
                    {"seconds_per_step", step},
                    {"checkpoint", checkpoint},
                    {"held", checkpoint}};
  return {{"name", "flowers"},
          {"framework", "builtin"},
          {"last_progress", {{"step", 50}, {"steps", 400}, {"epochs", 4}}},
          {"attempts",
           {{{"step_timing", timing}, {"ranks", std::vector<int>(static_cast<std::size_t>(ranks))}}}}};
}

struct RunsFolder : test::Folder {
  void add(const std::string& run, const Json& record, int age) const {
    const auto file = path / "runs" / run / "record.json";
    REQUIRE(make_directories(file.parent_path(), Access::shared));
    REQUIRE(write_new_file(file, to_text(record)));
    std::filesystem::last_write_time(file,
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(age));
  }
};

}  // namespace

TEST_CASE("the newest run of this job with the same number of ranks is used, links of chains included") {
  const RunsFolder there;
  there.add("flowers-1", record(2, 0.1, 1), 9);
  there.add("submit-flowers-1/link-0002", record(2, 0.2, 1), 3);
  there.add("flowers-2", record(8, 0.3, 1), 2);        // other ranks
  there.add("flowers-3", record(2, 0.4, nullptr), 1);  // no checkpoint
  const MeasuredRun run = find_measured(there.path, {}, kWanted).value();
  CHECK(run.timing.step.count() == doctest::Approx(0.2));
  CHECK(run.steps_per_epoch == 100);
  CHECK(run.source.ends_with("link-0002/record.json"));
  const auto named = find_measured(there.path, there.path / "runs" / "flowers-1", kWanted);
  CHECK(named->timing.step.count() == doctest::Approx(0.1));
}

TEST_CASE("of a job with a range of nodes, the newest run of each size is used") {
  const RunsFolder there;
  there.add("flowers-1", record(2, 0.4, 1), 9);
  there.add("flowers-2", record(4, 0.3, 1), 5);
  there.add("flowers-3", record(4, 0.2, 1), 3);
  there.add("flowers-4", record(16, 0.1, 1), 1);  // more than the range has
  MeasureWanted wanted = kWanted;
  wanted.min_ranks = 2, wanted.ranks = 8;
  const auto runs = find_measured_sizes(there.path, {}, wanted).value();
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].ranks == 2);
  CHECK(runs[1].timing.step.count() == doctest::Approx(0.2));
  wanted.min_ranks = 5;
  CHECK(find_measured_sizes(there.path, {}, wanted)
            .error()
            .text()
            .find("has 4 rank(s), and this job has 5 to 8") != std::string::npos);
}

TEST_CASE("if no run fits, the error says why the newest ones do not") {
  const RunsFolder there;
  CHECK(find_measured(there.path, {}, kWanted).error().text().find("--probe 2min") != std::string::npos);
  there.add("flowers-2", record(8, 0.3, 1), 2);
  CHECK(find_measured(there.path, {}, kWanted).error().text().find("has 8 rank(s), and this job has 2") !=
        std::string::npos);
  CHECK(find_measured(there.path, there.path / "runs" / "nothing", kWanted)
            .error()
            .what.ends_with("has no record with the times of this job"));
}

TEST_CASE("a record of an older dlrun has the step timing under its old name") {
  Json old = record(2, 0.2, 1);
  auto& attempt = old["attempts"][0];
  attempt["pace"] = attempt["step_timing"];
  attempt.erase("step_timing");
  CHECK(read_measured(old, "record.json")->timing.step.count() == doctest::Approx(0.2));
}

TEST_CASE("a record without steps has no step timing") {
  Json silent = record(2, 0.1, 1);
  silent["attempts"][0]["step_timing"] = nullptr;
  CHECK(read_measured(silent, "record.json").error().what.starts_with("record.json has no step timing"));
}
