// Ranks: the rank processes of one node as a set: started one by one with their environment, MPI bootstrap
// and processors, signalled, paused and reaped together. It judges nothing; it reports ends and lines.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "src/agent/binding.hpp"
#include "src/agent/pmi/mpi_service.hpp"
#include "src/agent/port_claims.hpp"
#include "src/agent/prolog_limits.hpp"
#include "src/agent/rank_process.hpp"

namespace dlrun::agent {

struct RankState {
  plan::RankPlan plan;
  std::unique_ptr<RankProcess> process;  // nullptr: not started
  int member = 0;                        // its number on this node
};

class Ranks {
 public:
  // What every rank of the node starts from.
  struct Base {
    const plan::NodeSlice* slice;
    Environment environment;
    std::string control_path;
    MpiService* mpi;    // nullptr: none
    PortClaims* ports;  // held for the ranks until now
    plan::EnvironmentChanges interface_variables = {};
    std::vector<UniqueFd> logs = {};        // of all(), in their order
    std::optional<rlimit> open_files = {};  // the agent's own are more
    ProcessLimits limits = {};              // as the prolog left them
    // The rank that has a standard input; the others have /dev/null.
    std::optional<Rank> input_rank = {};
    UniqueFd input = {};
  };
  enum class Flow { on, off };

  Ranks(EventLoop& loop, FileWriter& writer, RankProcess::Callbacks callbacks)
      : loop_(loop), writer_(writer), callbacks_(std::move(callbacks)) {}

  void add(const plan::NodeSlice& slice);
  // Starts every rank in order and calls `started` with each and its processors. The first that cannot be
  // started is an Error that names it; those before it run.
  Result<void> start(Base base, const std::function<void(const RankState&, const Processors&)>& started);

  // The rank's state; nullptr for a rank of another node.
  RankState* find(Rank rank);
  std::deque<RankState>& all() { return ranks_; }
  bool any_running() const;
  std::vector<pid_t> pids() const;  // of those that run
  void signal(int number) const;
  void set_output(Flow flow);
  void close_output();

 private:
  Result<void> start_one(RankState& rank, Base& base, const Processors& processors);
  EventLoop& loop_;
  FileWriter& writer_;
  RankProcess::Callbacks callbacks_;
  std::deque<RankState> ranks_;  // addresses stay
};

}  // namespace dlrun::agent
