// WalltimeWatch: the Deadline at work in a run: it keeps the timer, asks the scheduler again, and turns what
// is due into messages for the agents. It ends nothing itself: that is the head's, which it calls.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedulers/allocation.hpp"
#include "src/base/json_fwd.hpp"
#include "src/plan/job_spec.hpp"
#include "src/protocol/messages.hpp"
#include "src/record/outcome.hpp"
#include "src/run/checkpoint_files.hpp"
#include "src/run/deadline.hpp"
#include "src/run/end_reader.hpp"
#include "src/run/sleep_watch.hpp"

namespace dlrun::job {

struct WalltimeSettings {
  std::optional<Instant> scheduler_end;  // of the allocation, as the scheduler tells it
  std::optional<Instant> requested_end;  // by resources.walltime: serves where the scheduler does not tell
  Ticks began{};                         // of the run: margins are shares of its time
  Deadline::Policy policy = {};
  std::vector<std::string> request = {};  // checkpoint.request
  std::string checkpoint_files = {};      // checkpoint.files
  std::vector<EndQuestion> questions = {};
  bool pbs_path = false;  // questions need PBS's programs, which PATH may lack
  std::optional<Instant> end() const { return scheduler_end ? scheduler_end : requested_end; }
};

// `requested_from`: when a walltime of the job file began.
WalltimeSettings walltime_settings(const plan::JobSpec& spec, const Allocation& allocation,
                                   Instant requested_from, Ticks began);

class WalltimeWatch {
 public:
  struct Callbacks {
    std::function<void(const protocol::to_agent::RequestCheckpoint&)> ask;  // of every agent
    std::function<void(Deadline::Force)> end_ranks;
    std::function<void(const std::string& text)> note;
    std::function<void(const Json& event)> event;
  };
  WalltimeWatch(EventLoop& loop, WalltimeSettings settings, const Environment& environment,
                Callbacks callbacks);

  void begin();
  void all_started() { on(Deadline::Started{}); }
  void report(Rank rank, const Json& report);
  void child_ended() { reader_.child_ended(); }
  std::vector<pid_t> children() const { return reader_.children(); }
  void stop();  // nobody is to be asked any more

  WalltimeEnd result() const;

 private:
  void on(const Deadline::Event& event);
  void act(const Deadline::Action& action);
  void take_end(std::optional<Instant> end);
  void beat();
  void notice_sleep();
  std::optional<Instant> with_sleep(std::optional<Instant> end) const;
  Deadline::Ends ends() const;
  void save_and_stop(Seconds left);
  void end_ranks(Deadline::Force force);
  bool asks_by(std::string_view channel) const;

  EventLoop& loop_;
  WalltimeSettings settings_;
  Callbacks callbacks_;
  Deadline deadline_;
  CheckpointFiles files_;
  EndReader reader_;
  std::optional<EventLoop::TimerId> timer_, beat_timer_;
  SleepWatch sleep_;
  bool end_is_awaited_ = false;  // since a sleep
  std::optional<Seconds> left_by_count_;
  bool stopped_ = false;
  WalltimeEnd result_;
};

}  // namespace dlrun::job
