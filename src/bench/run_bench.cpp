#include "src/bench/run_bench.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>

#include <fcntl.h>

#include "src/base/file.hpp"
#include "src/base/lease.hpp"
#include "src/base/unique_fd.hpp"
#include "src/bench/collect.hpp"
#include "src/bench/early_stop_watch.hpp"
#include "src/bench/node_share.hpp"
#include "src/bench/point_job.hpp"
#include "src/process/child.hpp"
#include "src/process/event_loop.hpp"
#include "src/process/stop_signals.hpp"

namespace dlrun::bench {
namespace {

namespace fs = std::filesystem;

constexpr Seconds kEndsWithin{120};  // from the request to stop to the kill, beside the job's grace period

// A point that is under way.
struct Running {
  pid_t pid = -1;
  std::vector<std::size_t> nodes;
  Ticks began{};
  EndedBy by = EndedBy::itself;
  std::vector<EventLoop::TimerId> timers = {};
};

class BenchDriver {
 public:
  BenchDriver(OpenBench& open, BenchStatus& status)
      : open_(open),
        status_(status),
        nodes_(open.request.allocation->nodes.size()),
        needs_(open.bench.points.size(), 1) {
    if (!open.spec().stop_early) return;
    early_stop_.emplace(open);
    for (std::size_t i = 0; i < open.bench.points.size(); ++i)
      if (is_over(open.bench.points[i].status)) early_stop_->know(i);
  }

  Result<BenchEnd> run() {
    TRY(take_signals());
    tick();
    TRY(start_more());
    while (!running_.empty()) {
      TRY(loop_.turn());
      if (!problem_) continue;
      for (const auto& [index, running] : running_) ::kill(running.pid, SIGKILL);
      return fail(*problem_);
    }
    return end_;
  }

 private:
  Result<void> take_signals() {
    std::vector<int> all = stop_signals();
    all.push_back(SIGCHLD);
    return loop_.take_signals(all, [this](const CaughtSignal& signal) {
      if (signal.number == SIGCHLD)
        children_ended();
      else
        on_signal(signal);
    });
  }

  void on_signal(const CaughtSignal& signal) {
    const auto meaning = signals_.of(signal, std::chrono::steady_clock::now());
    if (meaning != StopSignals::Meaning::stop && meaning != StopSignals::Meaning::stop_now) return;
    end_.signal = end_.signal.value_or(signal.number);
    for (auto& [index, running] : running_) {
      if (running.by == EndedBy::itself) running.by = EndedBy::stop;
      pass_on(running.pid, signal);
    }
  }

  bool is_stopping() const { return end_.signal || end_.at_walltime || problem_; }

  Standing standing() const {
    Standing out = standing_of(open_.bench);
    if (ended_ == 0) return out;
    const double each = took_.count() / static_cast<double>(ended_);
    const auto at_once = static_cast<double>(std::max<std::size_t>(1, most_at_once_));
    out.left = Seconds(each * static_cast<double>(out.all - out.over) / at_once);
    return out;
  }

  void tick() {
    loop_.after(Seconds(1), [this] {
      stop_the_worse();
      status_.waiting(standing());
      tick();
    });
  }

  void stop_the_worse() {
    if (!early_stop_) return;
    for (const auto& [index, running] : running_)
      if (auto why = early_stop_->why_stopped(index)) {
        why_stopped_[index] = std::move(*why);
        ask_to_end(index, EndedBy::goal);
      }
  }

  bool may_start_one() const {
    const auto most = open_.spec().concurrent;
    return !is_stopping() && (!most || running_.size() < static_cast<std::size_t>(*most));
  }

  // In order; a point that needs more nodes than are free lets smaller ones pass.
  Result<void> start_more() {
    for (std::size_t i = 0; i < open_.bench.points.size() && may_start_one(); ++i)
      if (open_.bench.points[i].status == PointStatus::pending && needs_[i] <= nodes_.free()) TRY(start(i));
    return {};
  }

  // A point that does not fit into this allocation waits for a larger one.
  Result<void> refuse(std::size_t index, const Error& error) {
    Point& point = open_.bench.points[index];
    if (error.kind == ErrorKind::allocation) needs_[index] = open_.request.allocation->nodes.size() + 1;
    if (error.kind != ErrorKind::allocation) point.status = PointStatus::failed;
    point.why = error.what;
    status_.ended(open_.bench, point);
    return write_bench(open_.bench, open_.folder);
  }

  Result<void> start(std::size_t index) {
    Point& point = open_.bench.points[index];
    const auto planned = plan_point(open_.request, open_.points[index], point_folder(open_.folder, point.id));
    if (!planned) return refuse(index, planned.error());
    needs_[index] = planned->plan.nodes.size();
    auto nodes = nodes_.take(needs_[index]);
    if (!nodes) return {};
    point.ranks = ranks_of_point(planned->plan);
    point.run = free_run_directory(open_.folder, point.id);
    TRY(write_point_job(open_, index, planned->spec));
    const Allocation part = part_of(*open_.request.allocation, *nodes);
    TRY(replace_file(point_folder(open_.folder, point.id) / "allocation.json", to_pretty_text(to_json(part)),
                     Durability::none));
    Running running{
        .pid = TRY(start_run(point)), .nodes = std::move(*nodes), .began = std::chrono::steady_clock::now()};
    point.status = PointStatus::running;
    point.why.clear();
    set_timers(running, index, planned->spec.launch.grace);
    running_.emplace(index, std::move(running));
    most_at_once_ = std::max(most_at_once_, running_.size());
    status_.started(standing(), point);
    return write_bench(open_.bench, open_.folder);
  }

  Result<pid_t> start_run(const Point& point) {
    const fs::path folder = point_folder(open_.folder, point.id), said = folder / "output.txt";
    const UniqueFd output(::open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!output) return fail(ErrorKind::io, "cannot create {}: {}", said.string(), system_reason(errno));
    ChildSpec child;
    child.argv = {(open_.request.installation.bin / "dlrun").string(), "run",
                  "--spec=" + (folder / "spec.json").string(),
                  "--allocation=" + (folder / "allocation.json").string(),
                  "--run-dir=" + (open_.folder / point.run).string()};
    if (open_.request.framework_dir)
      child.argv.push_back("--framework-dir=" + fs::absolute(*open_.request.framework_dir).string());
    child.environment = open_.request.environment;
    if (!open_.request.sources.job_file)
      child.working_directory = open_.request.spec->base_directory.string();
    child.stdout_fd = child.stderr_fd = output.get();
    return start_child(child);
  }

  void set_timers(Running& running, std::size_t index, Seconds grace) {
    const plan::BenchSpec& spec = open_.spec();
    const auto at = [&](Seconds when, EndedBy by) {
      running.timers.push_back(loop_.after(when, [this, index, by] { ask_to_end(index, by); }));
    };
    at(spec.limit, EndedBy::limit);
    if (spec.time) at(*spec.time, EndedBy::time);
    running.timers.push_back(loop_.after(spec.limit + grace + kEndsWithin, [this, index] { kill(index); }));
  }

  void ask_to_end(std::size_t index, EndedBy by) {
    const auto found = running_.find(index);
    if (found == running_.end() || found->second.by != EndedBy::itself) return;
    found->second.by = by;
    ::kill(found->second.pid, SIGTERM);
  }

  // Its agents end the ranks where their head is gone.
  void kill(std::size_t index) {
    if (const auto found = running_.find(index); found != running_.end()) ::kill(found->second.pid, SIGKILL);
  }

  void children_ended() {
    for (auto at = running_.begin(); at != running_.end();) {
      if (!reap(at->second.pid)) {
        ++at;
        continue;
      }
      const std::size_t index = at->first;
      const Running running = std::move(at->second);
      at = running_.erase(at);
      on_ended(index, running);
    }
    if (const auto more = start_more(); !more) problem_ = more.error();
  }

  void on_ended(std::size_t index, const Running& running) {
    for (const EventLoop::TimerId timer : running.timers) loop_.cancel(timer);
    nodes_.give_back(running.nodes);
    Point& point = open_.bench.points[index];
    collect(point, open_.bench, open_.spec(), open_.folder, running.by);
    if (point.status == PointStatus::stopped_early) point.why = why_stopped_[index];
    if (early_stop_ && is_over(point.status)) early_stop_->know(index);
    took_ += std::chrono::steady_clock::now() - running.began;
    ++ended_;
    // Stopped, and not by us: the allocation ends.
    if (point.status == PointStatus::pending && running.by == EndedBy::itself) end_.at_walltime = true;
    if (const auto written = write_bench(open_.bench, open_.folder); !written) problem_ = written.error();
    status_.ended(open_.bench, point);
  }

  OpenBench& open_;
  BenchStatus& status_;
  NodeShare nodes_;
  std::vector<std::size_t> needs_;  // nodes of each point, once it was planned
  EventLoop loop_;
  StopSignals signals_;
  std::map<std::size_t, Running> running_;  // by index of the point
  std::optional<EarlyStopWatch> early_stop_;
  std::map<std::size_t, std::string> why_stopped_;
  BenchEnd end_;
  std::optional<Error> problem_;
  Seconds took_{0};
  std::size_t ended_ = 0, most_at_once_ = 0;
};

// Who waited for another process knows the points as they were before that one measured them.
Result<void> check_unchanged(const OpenBench& open) {
  const Bench now = TRY(read_bench(open.folder));
  if (standing_of(now).over <= standing_of(open.bench).over) return {};
  return fail(
      Error{.kind = ErrorKind::usage,
            .what = fmt::format("another process has measured points of {} meanwhile", open.folder.string()),
            .where = {},
            .hint = fmt::format("dlrun bench --resume {} measures what is left", open.folder.string()),
            .also = {}});
}

}  // namespace

Standing standing_of(const Bench& bench) {
  Standing out{.over = 0, .all = bench.points.size(), .running = {}, .left = {}};
  for (const Point& point : bench.points) {
    out.over += is_over(point.status) ? 1 : 0;
    if (point.status == PointStatus::running) out.running.push_back(&point);
  }
  return out;
}

Result<BenchEnd> run_bench(OpenBench& open, BenchStatus& status) {
  hold_stop_signals();
  const Lease lease = TRY(
      take_lease({.folder = open.folder / "lease",
                  .owner = {.process = this_process(),
                            .job = open.request.allocation->job_id.value_or(""),
                            .run = open.bench.name},
                  .what = "benchmark " + open.folder.string(),
                  .in_use = ErrorKind::usage,
                  .hint = "wait for it, or stop it",
                  .times = {},
                  .waiting = [&](const std::string& owner, Seconds) { status.note("waiting for " + owner); },
                  .life = {},
                  .now = {},
                  .sleep = {}}));
  TRY(check_unchanged(open));
  TRY(write_bench(open.bench, open.folder));
  return BenchDriver(open, status).run();
}

}  // namespace dlrun::bench
