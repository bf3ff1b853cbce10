#include "src/agent/driver.hpp"

#include <csignal>
#include <deque>
#include <exception>
#include <map>

#include <sys/prctl.h>
#include <unistd.h>

#include "src/agent/agent.hpp"
#include "src/agent/binding.hpp"
#include "src/agent/cpu_energy.hpp"
#include "src/agent/gpu_meter.hpp"
#include "src/agent/node_check.hpp"
#include "src/agent/node_processes.hpp"
#include "src/agent/node_usage.hpp"
#include "src/agent/open_files.hpp"
#include "src/agent/pmi/pmix_service.hpp"
#include "src/agent/port_claims.hpp"
#include "src/agent/relay_links.hpp"
#include "src/agent/report_error.hpp"
#include "src/agent/stage_in/stager.hpp"
#include "src/base/json.hpp"
#include "src/base/log.hpp"
#include "src/base/type_name.hpp"
#include "src/base/uncaught.hpp"
#include "src/plan/run_directory.hpp"
#include "src/process/aside.hpp"
#include "src/process/descendants.hpp"
#include "src/process/stop_signals.hpp"
#include "src/protocol/codec.hpp"
#include "src/protocol/tcp_acknowledgement.hpp"

namespace dlrun::agent {
namespace {

using action::Alarm;

constexpr Seconds kRelayDrains{5};  // how long agents below may take to read what they wait for
constexpr Seconds kFirstUsage{2}, kUsageInterval{5};

struct Streams {
  UniqueFd in, out;  // of the head; without `out` both are one socket
};

class Driver {
 public:
  Driver(const Environment& environment, Streams streams, std::optional<Token> token,
         std::shared_ptr<CleanupList> cleanup)
      : environment_(environment),
        agent_(environment),
        node_(loop_, environment, ports_, [this](Event event) { take_of_node(std::move(event)); }),
        relay_(
            loop_, token, [this](Event event) { take(std::move(event)); }, [this] { drained_if_all(); }),
        stager_(loop_, token, std::move(cleanup), environment,
                [this](Event event) { take(std::move(event)); }),
        head_fd_(streams.in.get()),
        head_(loop_, std::move(streams.in), std::move(streams.out),
              {.message = [this](Message message) { on_message(std::move(message)); },
               .closed = [this](const std::string&) { take(event::HeadGone{}); },
               .drained = [this] { drained_if_all(); }}) {}

  /// `users_open_files`: the limits before we raised our own.
  int run(const Result<rlimit>& users_open_files) {
    take(event::Begun{prepare_process(users_open_files), ::getpid()});
    loop_.after(kFirstUsage, [this] { tell_usage(); });
    return to_int(loop_.run() ? exit_code_ : ExitCode::internal);
  }
  bool begins_anew() const { return begins_anew_; }
  Streams take_streams() {
    auto [in, out] = head_.release();
    return {std::move(in), std::move(out)};
  }

 private:
  Result<void> prepare_process(const Result<rlimit>& users_open_files) {
    TRY(become_subreaper());
    if (!users_open_files) return fail(users_open_files.error());
    node_.set_users_open_files(*users_open_files);
    // Blocked before the MPI service starts threads, so that every signal comes to the loop.
    std::vector<int> signals = stop_signals();
    signals.insert(signals.end(), {SIGCHLD, SIGPIPE});
    return loop_.take_signals(signals, [this](const CaughtSignal& signal) { on_signal(signal); });
  }

  void on_signal(const CaughtSignal& signal) {
    if (signal.number == SIGCHLD) return stager_.is_copying() ? void() : node_.child_ended();
    if (signal.number == SIGPIPE) return;
    ::getppid() == reaper_ ? take(event::Signalled{signal}) : take(event::ReaperGone{});
  }

  void on_message(Message message) {
    auto decoded = protocol::decode_to_agent(std::move(message));
    decoded ? take(event::HeadSaid{std::move(*decoded)}) : take(event::HeadMalformed{decoded.error()});
  }

  void take_of_node(Event event) {
    if (auto* line = std::get_if<event::UnfinishedLine>(&event)) line->queued = head_.queued();
    take(std::move(event));
  }

  // An event that comes while actions are carried out waits until these are done.
  void take(Event event) {
    events_.push_back(std::move(event));
    if (busy_) return;
    busy_ = true;
    for (; !events_.empty(); events_.pop_front()) {
      if (log::is_on()) log_event(events_.front());
      for (const Action& action : agent_.on(events_.front(), std::chrono::steady_clock::now()))
        std::visit([this](const auto& what) { perform(what); }, action);
    }
    busy_ = false;
  }

  // Headers alone: environments, secrets and what ranks print are in bodies.
  static void log_event(const Event& event) {
    if (const auto* said = std::get_if<event::HeadSaid>(&event))
      return log::debug("from head {}", to_text(protocol::encode(said->message).header));
    std::visit([]<class T>(const T&) { log::debug("event {}", type_name<T>()); }, event);
  }

  void perform(const action::Send& send) {
    const Message message = protocol::encode(send.message);
    if (log::is_on()) log::debug("to head {}", to_text(message.header));
    send.order == action::Send::Order::ahead ? head_.send_ahead(message) : head_.send(message);
    const auto* output = std::get_if<protocol::from_agent::Output>(&send.message);
    if (output != nullptr && !output->unfinished && head_.queued() > 0)
      take(event::OutputWaits{output->rank, output->text.size(), head_.queued()});
  }
  void perform(const action::AwaitDrained&) { drained_if_all(); }
  void drained_if_all() {
    if (leaving_ && relay_.queued() == 0 && (!begins_anew_ || head_.queued() == 0)) loop_.stop();
    if (head_.queued() == 0 && relay_.queued() == 0) take(event::Drained{});
  }
  // For whoever looks on. It waits behind what ranks print, and is left out where that has to wait.
  void tell_usage() {
    if (begins_anew_) return;
    if (head_.queued() == 0) send_usage();
    gpus_.ask();
    loop_.after(kUsageInterval, [this] { tell_usage(); });
  }
  void send_usage() {
    Json usage = usage_.measure();
    if (counting_) {
      const auto joules = energy_.joules();
      usage["cpu_joules"] = joules ? Json(*joules) : Json(nullptr);
      if (!joules) usage["cpu_why"] = joules.error().what;
      usage.update(gpus_.usage());
    }
    head_.send(protocol::encode(protocol::FromAgent(protocol::from_agent::NodeUsage{std::move(usage)})));
  }
  // Energy counts from here to the end of the ranks.
  void perform(const action::StartRanks& start) {
    counting_ = true;
    energy_.begin();
    gpus_.begin(start.gpus);
    give_to_node(start);
  }
  void perform(const action::EndStrays& end) {
    if (counting_) send_usage();
    counting_ = false;
    give_to_node(end);
  }
  void perform(const action::OpenRelay& open) { relay_.perform(open); }
  void perform(const action::JoinParent& join) { relay_.perform(join); }
  void perform(const action::SendToParent& send) { relay_.perform(send); }
  void perform(const action::SendToChildren& send) { relay_.perform(send); }

  void perform(const action::WakeAt& wake) {
    if (const auto earlier = alarms_.find(wake.alarm); earlier != alarms_.end())
      loop_.cancel(earlier->second);
    alarms_[wake.alarm] =
        loop_.after(wake.when - std::chrono::steady_clock::now(), [this, alarm = wake.alarm] {
          alarms_.erase(alarm);
          take(due(alarm));
        });
  }

  Event due(Alarm alarm) {
    switch (alarm) {
      case Alarm::beat:
        return event::Beat{unacknowledged_for(head_fd_), relay_.parent_unacknowledged()};
      case Alarm::above:
        return event::AboveSeen{probe_above(reaper_)};
      case Alarm::barriers:
        return event::BarriersSeen{node_.any_waits_in_barrier()};
      case Alarm::supervisor:
        return event::SupervisorTick{};
      case Alarm::head_answer:
        return event::HeadAnswerDue{};
      case Alarm::shutdown:
        return event::ShutdownDue{};
      case Alarm::relay:
        return event::RelayDue{};
      case Alarm::stage:
        return event::StageDue{};
    }
    return event::ShutdownDue{};
  }

  // The driver of a GPU may answer late: meanwhile we are to be heard.
  void perform(const action::TakeInventory& take_it) {
    inventory_ = std::make_unique<Aside<plan::NodeInventory>>(
        loop_,
        [environment = environment_, gpus = take_it.gpus] { return take_inventory(environment, gpus); },
        [this](plan::NodeInventory found) { take(event::InventoryTaken{std::move(found)}); });
  }

  void perform(const action::ReadClock&) {
    take(event::ClockRead{std::chrono::system_clock::now().time_since_epoch()});
  }
  void perform(const action::CheckNode& check) { check_.check_node(check.question); }
  void perform(const action::CheckPeers& check) { check_.check_peers(check.question); }
  void perform(const action::CheckRing& check) { check_.check_ring(check.question); }

  void perform(const action::ClaimPorts& claim) { take(event::PortsClaimed{ports_.claim(claim.ports)}); }

  void perform(const action::SignalDescendants& signal) {
    for (const pid_t pid : descendants()) ::kill(pid, signal.number);
  }

  void perform(const action::Exit& exit) {
    exit_code_ = exit.code;
    leaving_ = true;
    if (relay_.queued() == 0) return loop_.stop();
    loop_.after(kRelayDrains, [this] { loop_.stop(); });
  }

  // The head says nothing more until it hears us anew; what we have said still goes out to it.
  void perform(const action::BeginAnew&) {
    begins_anew_ = leaving_ = true;
    if (head_.queued() == 0 && relay_.queued() == 0) loop_.stop();
  }

  void perform(const action::PrepareNode& prepare) {
    auto opened =
        log::open(prepare.log_level, plan::agent_log_path(prepare.slice->plan, prepare.slice->node));
    if (!opened) take(event::Noted{opened.error().text()});
    stager_.begin(prepare);
    node_.perform(prepare);
  }
  void perform(const action::SurveyStage& survey) { stager_.perform(survey); }
  void perform(const action::ClaimStage& claim) { stager_.perform(claim); }
  void perform(const action::CopyStage& copy) { stager_.perform(copy); }
  void perform(const action::RemoveStage& remove) { stager_.perform(remove); }

  template <class Other>
  void perform(const Other& action) {
    give_to_node(action);
  }

  template <class Action>
  void give_to_node(const Action& action) {
    log::debug("action {}", type_name<Action>());
    node_.perform(action);
  }

  EventLoop loop_;
  const Environment environment_;  // of this process, as it was born
  Agent agent_;
  PortClaims ports_;
  NodeProcesses node_;
  std::deque<Event> events_;
  bool busy_ = false, leaving_ = false, begins_anew_ = false;
  std::map<Alarm, EventLoop::TimerId> alarms_;
  std::unique_ptr<Aside<plan::NodeInventory>> inventory_;
  NodeCheck check_{
      loop_,
      environment_,
      {.node =
           [this](protocol::from_agent::NodeChecked answer) { take(event::NodeChecked{std::move(answer)}); },
       .peers =
           [this](protocol::from_agent::PeersChecked answer) {
             take(event::PeersChecked{std::move(answer)});
           },
       .ring =
           [this](protocol::from_agent::RingChecked answer) {
             take(event::RingChecked{std::move(answer)});
           }}};
  RelayLinks relay_;
  Stager stager_;
  NodeUsageMeter usage_;
  CpuEnergy energy_;
  GpuMeter gpus_{loop_};
  bool counting_ = false;  // ranks run
  const pid_t reaper_ = ::getppid();
  ExitCode exit_code_ = ExitCode::done;
  int head_fd_;
  MessageStream head_;
};

// Said while the stream is open: at its end the head ends what is left of us.
int run(Driver& driver, const Result<rlimit>& users_open_files) {
  try {
    return driver.run(users_open_files);
  } catch (const std::exception& uncaught) {
    return report_error(error_of(uncaught));
  }
}

}  // namespace

int serve(const Environment& environment, int in, int out, std::optional<Token> token, CleanupList cleanup) {
  keep_topology_simple();
  ::prctl(PR_SET_NAME, "dlrun-agent");  // what ps and top show; it was started as /proc/self/exe
  const Result<rlimit> users_open_files = raise_open_files();
  Streams streams{UniqueFd(in), UniqueFd(out)};
  const auto list = std::make_shared<CleanupList>(std::move(cleanup));
  for (;;) {
    auto driver = std::make_unique<Driver>(environment, std::move(streams), token, list);
    const int code = run(*driver, users_open_files);
    if (!driver->begins_anew()) return code;
    streams = driver->take_streams();
    driver.reset();
    // The head is gone meanwhile, or is to start another process for what this one cannot serve again.
    if (!streams.in || !unload_pmix()) return code;
  }
}

}  // namespace dlrun::agent
