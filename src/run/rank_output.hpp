// RankOutput: what ranks print, on its way to people, and the last lines of each rank for the verdict. Pure.
// Whole logs are the agents' to write. What is kept is bounded for all ranks together: of many ranks, less of
// each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/plan/secret_values.hpp"
#include "src/run/failure_cause.hpp"
#include "src/run/head_actions.hpp"

namespace dlrun::job {

class RankOutput {
 public:
  // `secrets`: not kept; they may become more.
  RankOutput(std::size_t ranks, const plan::SecretValues& secrets);

  /// There are more ranks now.
  void grow(std::size_t ranks) { ranks_.resize(ranks); }
  /// What is to be shown of it; empty where nothing is.
  std::optional<Action> take(protocol::from_agent::Output output);
  /// The others' after the first failure: their logs have it, and people see what failed first.
  void show_only(Rank rank) { shown_only_ = rank; }
  /// Why a rank fails, as it says itself; empty: it does not say.
  const std::string& cause(Rank rank) const { return at(rank).cause.text(); }
  std::vector<std::string> last_lines(Rank rank) const;

 private:
  struct State {
    std::string last;  // lines with their newlines
    std::string unfinished;
    FailureCause cause;
  };
  State& at(Rank rank) { return ranks_[static_cast<std::size_t>(rank.get())]; }
  const State& at(Rank rank) const { return ranks_[static_cast<std::size_t>(rank.get())]; }
  void keep(State& state, protocol::OutputStream stream, const std::string& line) const;
  bool is_shown(Rank rank) const { return !shown_only_ || *shown_only_ == rank; }

  const plan::SecretValues& secrets_;
  std::vector<State> ranks_;
  std::size_t max_kept_;  // bytes of a rank's last lines
  std::optional<Rank> shown_only_;
};

}  // namespace dlrun::job
