// How runs stand, as people see it.
#include "src/cli/run_lines.hpp"

#include <doctest/doctest.h>

#include "src/base/strings.hpp"
#include "src/base/utc.hpp"

using namespace dlrun;
using namespace dlrun::cli;
using report::RunState;
using report::RunView;

namespace {

const Instant kNow = parse_utc("2026-11-29T20:10:00Z").value();

RunView running() {
  RunView out;
  out.entry = {"/w/runs/small-20261129-200000-aaaa", report::FolderKind::run, {}};
  out.run = out.entry.path;
  out.name = "small";
  out.standing.state = RunState::running;
  out.scheduler = "slurm", out.scheduler_job = "17";
  out.began = parse_utc("2026-11-29T20:00:00Z");
  out.nodes = 1, out.ranks = 2;
  out.head.emplace();
  out.head->phase = "training";
  out.head->steps_per_second = 2;
  out.head->left = Seconds(240);
  out.head->slowest = job::SlowestRank{.rank = 1, .host = "c1", .step = 110, .behind = 10};
  out.progress = {{"step", 120}, {"steps", 600}, {"epoch", 1},
                  {"epochs", 5}, {"loss", 0.5},  {"accuracy", 0.9}};
  job::NodeUsage usage;
  usage.host = "c1", usage.cpu = 0.5;
  out.hosts = {{"c1", 2, usage}};
  return out;
}

std::string page(const RunView& view) {
  return join(status_lines(view, kNow), "\n");
}

}  // namespace

TEST_CASE("a live run: state, progress, pace, time, the slowest rank and the nodes") {
  CHECK(page(running()) ==
        "run        small in /w/runs/small-20261129-200000-aaaa\n"
        "state      running: training\n"
        "job        Slurm job 17\n"
        "ranks      2 rank(s) on 1 node(s)\n"
        "progress   step 120 of 600 (20 %), epoch 1 of 5, loss 0.5, accuracy 90.0 %\n"
        "pace       2 steps/s\n"
        "time       began 2026-11-29T20:00:00Z, for 10m00s; done in about 4m00s (2026-11-29T20:14:00Z)\n"
        "slowest    rank 1 on c1: step 110, 10 behind the fastest\n"
        "node       c1: 2 rank(s), CPU 50 %");
}

TEST_CASE("a walltime that is too short for the training is said") {
  RunView view = running();
  view.head->walltime_end = kNow + std::chrono::minutes(2);
  CHECK(page(view).find(
            "walltime   ends 2026-11-29T20:12:00Z (in 2m00s); the training will not be done by then") !=
        std::string::npos);
}

TEST_CASE("a failed run has a reason and no live lines") {
  RunView view = running();
  view.standing = {RunState::failed, "worker 1 (rank 1) on c1: exit code 3", 3};
  view.ended = parse_utc("2026-11-29T20:05:00Z");
  const std::string text = page(view);
  CHECK(text.find("state      failed (exit code 3)\nreason     worker 1 (rank 1) on c1: exit code 3") !=
        std::string::npos);
  CHECK(text.find("took 5m00s") != std::string::npos);
  for (const char* live : {"pace", "slowest", "node  "}) CHECK(text.find(live) == std::string::npos);
}

TEST_CASE("a queued job has its place, and nothing made up") {
  RunView view;
  view.entry = {"/w/runs/submit-big-20261129-200000-aaaa", report::FolderKind::submission, {}};
  view.name = "big", view.scheduler = "slurm", view.scheduler_job = "18";
  view.standing.state = RunState::queued;
  view.job.place = {.position = 2, .start = parse_utc("2026-11-29T21:00:00Z"), .reason = "Priority"};
  CHECK(page(view).find("queue      position 2, expected start 2026-11-29T21:00:00Z, reason Priority") !=
        std::string::npos);
  view.job.place = {};
  CHECK(page(view).find("queue      the scheduler does not report the position") != std::string::npos);
  CHECK(page(view).find("ranks") == std::string::npos);
}

TEST_CASE("the table of runs, and one line a refresh") {
  RunView lost = running();
  lost.entry.path = "/w/runs/b";
  lost.standing = {RunState::lost, "its head is gone\nand more", std::nullopt};
  lost.scheduler_job.reset();
  const auto lines = list_lines({running(), lost}, kNow);
  REQUIRE(lines.size() == 3);
  CHECK(lines[1] ==
        "running   small-20261129-200000-aaaa 17                 1      2    10m00s  step 120 of 600 (20 %)");
  CHECK(lines[2] ==
        "lost      b                          -                  1      2            its head is gone");
  CHECK(status_line(running(), kNow) ==
        "small-20261129-200000-aaaa: running: training, step 120 of 600 (20 %), epoch 1 of 5, loss 0.5, "
        "accuracy 90.0 %, 10m00s");
}

TEST_CASE("text of programs cannot move the cursor") {
  RunView view = running();
  view.head->phase = "\x1b[2Jtraining";
  for (const std::string& line : status_lines(view, kNow)) CHECK(line.find('\x1b') == std::string::npos);
}
