// NodeProcesses: the job's processes on this node and what serves them: prolog, ranks with their logs,
// control socket, MPI service, stray processes. It carries out the agent's actions about them and says by
// events what became of these and what the ranks do. It decides nothing.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "src/agent/accounting.hpp"
#include "src/agent/action.hpp"
#include "src/agent/control_server.hpp"
#include "src/agent/event.hpp"
#include "src/agent/gpu_check.hpp"
#include "src/agent/provenance/search.hpp"
#include "src/agent/rank_input.hpp"
#include "src/agent/ranks.hpp"
#include "src/agent/socket_folder.hpp"
#include "src/agent/stacks/stack_reader.hpp"
#include "src/agent/strays.hpp"
#include "src/process/writer_watch.hpp"

namespace dlrun::agent {

class NodeProcesses {
 public:
  using Tell = std::function<void(Event)>;
  /// `environment`: that the agent was started with. `ports`: held for the ranks.
  NodeProcesses(EventLoop& loop, Environment environment, PortClaims& ports, Tell tell);

  void set_users_open_files(rlimit limit) { open_files_ = limit; }
  /// After SIGCHLD.
  void child_ended();
  bool any_waits_in_barrier();

  void perform(const action::PrepareNode& prepare);
  void perform(const action::OpenLogs& open);
  void perform(const action::StartProlog& start);
  void perform(const action::ReadProlog&);
  void perform(const action::SetLimits& set) { limits_ = set.limits; }
  void perform(const action::StartRanks& start);
  void perform(const action::SignalRanks& signal) { ranks_.signal(signal.number); }
  void perform(const action::SignalProlog& signal);
  void perform(const action::GiveInput& input);
  void perform(const action::EndInput&);
  void perform(const action::TellRanks& tell);
  void perform(const action::ProbeRanks&);
  void perform(const action::ReadStacks& wanted);
  void perform(const action::CheckGpus&) { gpu_check_.check(); }
  void perform(const action::WatchGpus&) { gpu_check_.begin(); }
  void perform(const action::FindProvenance&) { provenance_.begin(); }
  void perform(const action::TellAllgathered& told);
  void perform(const action::PauseOutput& pause);
  void perform(const action::ResumeOutput&) { ranks_.set_output(Ranks::Flow::on); }
  void perform(const action::WriteFile& file);
  void perform(const action::EndStrays&);
  void perform(const action::CloseRanks&);
  void perform(const action::AwaitWrites&);

 private:
  Result<void> prepare(const action::PrepareNode& prepare);
  Result<void> start_services();
  Result<std::unique_ptr<RankProcess>> start_prolog(const Environment& environment);
  void read_prolog();
  Result<void> start_ranks(const action::StartRanks& start);
  Result<UniqueFd> open_input(std::optional<Rank> rank);
  plan::EnvironmentChanges interface_variables();
  std::optional<rlimit> take_open_files();
  void attach(pid_t process);
  void tell_start(const RankState& rank, const Environment& environment, const Processors& processors);
  void tell_exit(const RankState& rank);
  std::vector<RankProcesses> running_ranks();
  std::optional<pid_t> first_rank();
  void note(const std::string& text) { tell_(event::Noted{text}); }
  std::string environment_file() const { return (scratch_->path() / "environment").string(); }
  std::string control_path() const { return (scratch_->path() / "control").string(); }

  EventLoop& loop_;
  const Environment born_with_;
  PortClaims& ports_;
  Tell tell_;
  FileWriter writer_;
  WriterWatch files_;
  Ranks ranks_;
  GpuCheck gpu_check_;
  ProvenanceSearch provenance_;
  std::shared_ptr<const plan::NodeSlice> slice_;
  std::optional<Scratch> scratch_;
  std::optional<Accounting> accounting_;
  std::unique_ptr<ControlServer> control_;
  std::unique_ptr<MpiService> mpi_;
  std::unique_ptr<RankProcess> prolog_;
  std::unique_ptr<Strays> strays_;
  std::unique_ptr<StackReader> stacks_;
  std::optional<RankInput> input_;      // where the rank that has one is ours
  std::vector<UniqueFd> logs_;          // opened for what is started next
  std::optional<rlimit> open_files_;    // the user's limits
  ProcessLimits limits_;                // what setup lines have set
  std::uint64_t oom_kills_before_ = 0;  // the ranks' start
};

}  // namespace dlrun::agent
