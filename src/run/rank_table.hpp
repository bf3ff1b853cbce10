// RankTable: how far each rank has come, and when the services have nothing left to serve. Pure bookkeeping.
// Services (parameter servers, schedulers) run until those that they serve have ended, wherever these ran.
#pragma once

#include <vector>

#include "src/plan/plan.hpp"
#include "src/protocol/messages.hpp"
#include "src/record/outcome.hpp"

namespace dlrun::job {

class RankTable {
 public:
  explicit RankTable(const plan::Plan& plan);

  /// The plan has more ranks now.
  void grow(const plan::Plan& plan);
  /// The rank's process runs.
  void started(const protocol::from_agent::Started& started);
  /// The rank's process has ended.
  void exited(const protocol::from_agent::Exited& exited, const plan::RankPlan& rank);
  /// It is lost, and the others go on.
  void spared(Rank rank);
  bool all_started() const { return started_ == results_.size(); }
  /// Nodes with ranks that are not started, and nobody goes on without.
  std::vector<NodeIndex> not_started(const plan::Plan& plan) const;
  /// Whether all that the services serve have ended in order: it is for the head to end them.
  bool services_are_over() const { return served_ == 0 && served_at_first_ < results_.size(); }
  /// They are being ended: how they end is no failure.
  void end_services() { services_ended_ = true; }
  bool is_ended_service(const plan::RankPlan& rank) const { return services_ended_ && rank.service; }

  const RankResult& operator[](Rank rank) const { return results_[static_cast<std::size_t>(rank.get())]; }
  const std::vector<RankResult>& results() const { return results_; }

 private:
  RankResult& at(Rank rank) { return results_[static_cast<std::size_t>(rank.get())]; }

  std::vector<RankResult> results_;
  std::size_t started_ = 0;
  std::size_t served_at_first_ = 0, served_ = 0;  // ranks that are no services; those that have not ended
  bool services_ended_ = false;
};

}  // namespace dlrun::job
