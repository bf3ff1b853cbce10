#include "src/run/walltime_watch.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "schedulers/pbs/path.hpp"
#include "src/base/overloaded.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::job {
namespace {

constexpr Seconds kMaxPause{3e9};  // a hundred years: no run is longer, and clocks can count it

Ticks ticks() {
  return std::chrono::steady_clock::now();
}

// Of "signal:TERM"; 0 where no signal is to be sent. The names are those that the job file may have.
int signal_of(const std::vector<std::string>& ways) {
  static const std::vector<std::pair<std::string, int>> signals{
      {"signal:TERM", SIGTERM}, {"signal:INT", SIGINT}, {"signal:USR1", SIGUSR1},
      {"signal:USR2", SIGUSR2}, {"signal:HUP", SIGHUP}, {"signal:CONT", SIGCONT}};
  for (const auto& [name, number] : signals)
    if (std::find(ways.begin(), ways.end(), name) != ways.end()) return number;
  return 0;
}

}  // namespace

WalltimeSettings walltime_settings(const plan::JobSpec& spec, const Allocation& allocation,
                                   Instant requested_from, Ticks began) {
  std::optional<Seconds> lead;
  if (const auto requested = parse_duration(spec.checkpoint.lead)) lead = *requested;
  WalltimeSettings out{.scheduler_end = allocation.end_time, .requested_end = {}, .began = began};
  if (spec.resources.walltime && *spec.resources.walltime != kUnlimited)
    out.requested_end = requested_from + std::chrono::duration_cast<Milliseconds>(
                                             std::min(*spec.resources.walltime, kMaxPause));
  out.policy = Deadline::policy_for(allocation.scheduler, lead);
  out.request = spec.checkpoint.request;
  out.checkpoint_files = spec.checkpoint.files;
  out.pbs_path = allocation.scheduler == "pbs";
  if (allocation.job_id) out.questions = end_questions(allocation.scheduler, *allocation.job_id);
  return out;
}

WalltimeWatch::WalltimeWatch(EventLoop& loop, WalltimeSettings settings, const Environment& environment,
                             Callbacks callbacks)
    : loop_(loop),
      settings_(std::move(settings)),
      callbacks_(std::move(callbacks)),
      deadline_(settings_.policy, settings_.began),
      files_(settings_.checkpoint_files),
      reader_(loop, settings_.questions, settings_.pbs_path ? with_pbs_path(environment) : environment,
              {.read = [this](std::optional<Instant> end) { take_end(with_sleep(end)); },
               .left = [this](Seconds left) { left_by_count_ = left; },
               .failed =
                   [this](const Error& why) {
                     callbacks_.event({{"event", "end_not_told"}, {"reason", why.what}});
                     if (std::exchange(end_is_awaited_, false)) on(Deadline::EndUnknown{});
                   }}) {}

void WalltimeWatch::begin() {
  result_.end = settings_.end();
  if (result_.end) beat();
  on(ends());
}

void WalltimeWatch::beat() {
  beat_timer_ = loop_.after(SleepWatch::kBeat, [this] {
    notice_sleep();
    beat();
  });
}

// A scheduler that suspends a job may stop its clock as well, or move its end. Where nobody is to be asked, a
// requested walltime is one of work.
void WalltimeWatch::notice_sleep() {
  const Seconds slept = sleep_.beat(ticks());
  if (slept.count() <= 0 || stopped_) return;
  callbacks_.event({{"event", "stood_still"}, {"seconds", slept.count()}});
  if (!settings_.scheduler_end && settings_.requested_end) {
    *settings_.requested_end += std::chrono::duration_cast<Milliseconds>(slept);
    result_.end = settings_.end();
    return on(ends());
  }
  if (settings_.questions.empty()) return;
  end_is_awaited_ = true;
  reader_.stop();  // its answer may be of before
  on(Deadline::Slept{});
}

// By the scheduler's count of used time the end may be later than by its start; no later than we slept, since
// that count lags.
std::optional<Instant> WalltimeWatch::with_sleep(std::optional<Instant> end) const {
  if (!end || !left_by_count_) return end;
  const Instant by_count = SystemClock().now() + std::chrono::duration_cast<Milliseconds>(*left_by_count_);
  return std::clamp(by_count, *end, *end + std::chrono::duration_cast<Milliseconds>(sleep_.total()));
}

// The wall clock may be set while a run is on: how far away the end is, is worked out when it is told.
Deadline::Ends WalltimeWatch::ends() const {
  const auto end = settings_.end();
  if (!end) return {};
  const Seconds left = std::clamp(Seconds(*end - SystemClock().now()), -kMaxPause, kMaxPause);
  return {ticks() + std::chrono::duration_cast<Ticks::duration>(left)};
}

void WalltimeWatch::take_end(std::optional<Instant> end) {
  const bool awaited = std::exchange(end_is_awaited_, false);
  if (end == settings_.scheduler_end) {
    if (awaited) on(ends());
    return;
  }
  settings_.scheduler_end = end;
  result_.end = settings_.end();
  const std::string text = result_.end ? format_utc(*result_.end) : std::string("never");
  callbacks_.event({{"event", "end_changed"}, {"end", text}});
  callbacks_.note("the end of the allocation was moved: " + text);
  on(ends());
}

void WalltimeWatch::report(Rank rank, const Json& report) {
  if (report.contains("saved")) {
    result_.saved = report["saved"];
    if (result_.stage != WalltimeEnd::Stage::none) result_.saved_when_asked = true;
    if (const auto seconds = field<double>(report, "seconds", "report"); seconds && *seconds >= 0)
      on(Deadline::Saved{Seconds(*seconds)});
  }
  if (rank == Rank(0) && report.contains("step")) on(Deadline::Step{});
}

void WalltimeWatch::stop() {
  files_.asked();
  stopped_ = true;
  reader_.stop();
  if (timer_) loop_.cancel(*timer_);
  if (beat_timer_) loop_.cancel(*beat_timer_);
  timer_.reset();
  beat_timer_.reset();
}

void WalltimeWatch::on(const Deadline::Event& event) {
  if (stopped_) return;
  if (sleep_.slept(ticks())) notice_sleep();  // before anything is due
  for (const Deadline::Action& action : deadline_.on(event, ticks())) act(action);
}

void WalltimeWatch::act(const Deadline::Action& action) {
  std::visit(Overloaded{[&](const Deadline::TrySave&) {
                          if (asks_by("control")) callbacks_.ask({.stop = false, .control = true});
                        },
                        [&](const Deadline::SaveAndStop& ask) { save_and_stop(ask.left); },
                        [&](const Deadline::EndRanks& end) { end_ranks(end.force); },
                        [&](const Deadline::ReadEnd&) { reader_.ask(); },
                        [&](const Deadline::WakeAt& wake) {
                          if (timer_) loop_.cancel(*timer_);
                          timer_ = loop_.after(wake.when - ticks(), [this] {
                            timer_.reset();
                            on(Deadline::Tick{});
                          });
                        }},
             action);
}

bool WalltimeWatch::asks_by(std::string_view channel) const {
  return std::find(settings_.request.begin(), settings_.request.end(), channel) != settings_.request.end();
}

WalltimeEnd WalltimeWatch::result() const {
  WalltimeEnd out = result_;
  const CheckpointFiles::Found files = files_.found();
  if (!files.newest.empty() && out.saved.is_null()) out.saved = files.newest;
  if (files.after_asked) out.saved_when_asked = true;
  return out;
}

void WalltimeWatch::save_and_stop(Seconds left) {
  files_.asked();
  result_.stage = WalltimeEnd::Stage::asked;
  result_.left = left;
  result_.signal = signal_of(settings_.request);
  callbacks_.event({{"event", "save_and_stop"}, {"seconds_left", left.count()}});
  callbacks_.note(fmt::format("{} until the end of the walltime: asking for a checkpoint and the end",
                              format_duration(left)));
  callbacks_.ask(
      {.stop = true, .control = asks_by("control"), .file = asks_by("file"), .signal = result_.signal});
}

void WalltimeWatch::end_ranks(Deadline::Force force) {
  const bool term = force == Deadline::Force::term;
  result_.stage = term ? WalltimeEnd::Stage::ended : WalltimeEnd::Stage::killed;
  callbacks_.event({{"event", "walltime"}, {"signal", term ? "TERM" : "KILL"}});
  callbacks_.note(term ? "the walltime is nearly over and the ranks still run: ending them"
                       : "the walltime is over: ending what is left at once");
  callbacks_.end_ranks(force);
}

}  // namespace dlrun::job
