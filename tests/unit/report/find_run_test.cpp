// Which run a person means by a word.
#include "src/report/find_run.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include "src/report/run_view.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::report;

namespace {

// Each is an hour newer than the one before.
struct Runs {
  test::Folder folder;
  int hours = 0;
  std::filesystem::path add(const std::string& name, const std::string& file, const std::string& text) {
    const auto at = std::filesystem::file_time_type::clock::now() + std::chrono::hours(++hours);
    for (const auto& [each, content] : {std::pair(std::string("spec.json"), std::string("{}")), {file, text}})
      std::filesystem::last_write_time(folder.write("runs/" + name + "/" + each, content), at);
    return folder.path / "runs" / name;
  }
  std::string found(const std::string& asked) const {
    const auto entry = find_run(folder.path, asked);
    return entry ? entry->folder() : entry.error().text();
  }
};

void add_some(Runs& out) {
  out.add("small-20261129-100000-aaaa", "plan.json", "{}");
  out.add("small-20261129-110000-bbbb", "record.json", R"({"scheduler_job_id": "17"})");
  out.add("submit-big-20261129-120000-cccc", "submission.json", R"({"job_id": "18"})");
  out.folder.write("runs/submit-big-20261129-120000-cccc/job.sh", "");
  out.add("other", "nothing", "");
}

}  // namespace

TEST_CASE("the name of a job in the name of its folder") {
  CHECK(job_name_of("small-20261129-193333-ed15") == "small");
  CHECK(job_name_of("submit-a-b-20261129-193333-ed15.7") == "a-b");
  CHECK(job_name_of("my-run") == "my-run");
  CHECK(job_name_of("") == "");
}

TEST_CASE(
    "a run is found by its folder, its job's name, its beginning, the scheduler's id, or as the newest") {
  Runs runs;
  add_some(runs);
  CHECK(runs.found("") == "submit-big-20261129-120000-cccc");
  CHECK(runs.found("small-20261129-100000-aaaa") == "small-20261129-100000-aaaa");
  CHECK(runs.found("runs/small-20261129-100000-aaaa/").find("small-20261129-100000-aaaa") !=
        std::string::npos);
  CHECK(runs.found("small") == "small-20261129-110000-bbbb");
  CHECK(runs.found("small-20261129-10") == "small-20261129-100000-aaaa");
  CHECK(runs.found("17") == "small-20261129-110000-bbbb");
  CHECK(runs.found("18") == "submit-big-20261129-120000-cccc");
}

TEST_CASE("what is not there is told with what is near") {
  Runs runs;
  add_some(runs);
  CHECK(runs.found("smal").find("small") != std::string::npos);  // the beginning of two
  CHECK(runs.found("smoll").find("did you mean 'small'?") != std::string::npos);
  CHECK(runs.found("small-2026").find("2 runs begin with 'small-2026'") != std::string::npos);
  CHECK(runs.found("runs/other").find("runs/other is no run, submission or chain") != std::string::npos);
  CHECK(runs.found("19").find("there is no run '19'") != std::string::npos);
  CHECK(find_run("/nowhere", "").error().what == "there is no run below /nowhere/runs");
}

TEST_CASE("a submission whose job has begun stands for its run") {
  Runs runs;
  add_some(runs);
  const auto submission = find_run(runs.folder.path, "18").value();
  CHECK(resolved(submission).folder() == submission.folder());
  runs.add("big-20261129-130000-dddd", "status.json", R"({"scheduler_job_id": "18"})");
  CHECK(resolved(submission).folder() == "big-20261129-130000-dddd");
  const auto listed = resolved(all_runs(runs.folder.path));
  REQUIRE(listed.size() == 3);
  CHECK(listed[0].folder() == "big-20261129-130000-dddd");
}

TEST_CASE("a folder that may not be read is told, and not taken for no run") {
  Runs runs;
  add_some(runs);
  const auto closed = runs.add("theirs-20261129-140000-eeee", "plan.json", "{}");
  std::filesystem::permissions(runs.folder.path, std::filesystem::perms(0755));
  std::filesystem::permissions(closed, std::filesystem::perms::none);
  const bool is_root = ::geteuid() == 0;
  constexpr uid_t kNobody = 65534;
  if (is_root) REQUIRE(::seteuid(kNobody) == 0);
  const std::string denied = "cannot look into " + closed.string() + ": Permission denied";
  CHECK(runs.found("theirs-20261129-140000-eeee").starts_with(denied));
  CHECK(runs.found("theirs").starts_with(denied));
  CHECK(runs.found("runs/theirs-20261129-140000-eeee/").starts_with(denied));
  CHECK(read_run_folder(closed).error().text().starts_with(denied));
  CHECK(runs.found("small") == "small-20261129-110000-bbbb");
  CHECK(runs.found("smoll").find("there is no run 'smoll'") != std::string::npos);
  CHECK(closed_folders(runs.folder.path) == std::vector{closed});
  if (is_root) REQUIRE(::seteuid(0) == 0);
  std::filesystem::permissions(closed, std::filesystem::perms(0755));
}
