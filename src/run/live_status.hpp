// LiveStatus: what a run tells of itself while it is on, put together from what the head hears: phases, steps
// of every rank, the nodes' usage. Pure; head_status_file.hpp writes it down. It keeps the last step of each
// rank and half a minute of rank 0's pace, and nothing else.
#pragma once

#include <deque>
#include <map>

#include "src/plan/plan.hpp"
#include "src/record/head_status.hpp"
#include "src/record/outcome.hpp"

namespace dlrun::job {

class LiveStatus {
 public:
  explicit LiveStatus(HeadStatus known) : status_(std::move(known)) {}

  /// Another attempt: its ranks and nodes, and no steps yet.
  void begin_attempt(const plan::Plan& plan);
  void stage(HeadStage stage) { status_.stage = stage; }
  void phase(std::string text) { status_.phase = std::move(text); }
  void walltime_end(std::optional<Instant> end) { status_.walltime_end = end; }
  void report(Rank rank, const Json& report, Ticks now);
  /// Ranks that an elastic job goes on without. The first of the others tells its progress.
  void lost(const std::vector<Loss>& losses);
  /// The plan has more ranks now, which are no members yet.
  void grow(const plan::Plan& plan);
  /// Those that have joined.
  void joined(const std::vector<Join>& joins) { status_.joins = to_json(joins); }
  bool leads(Rank rank) const { return static_cast<std::size_t>(rank.get()) == leader_; }
  void usage(NodeUsage usage);
  void stragglers(Json ranks) { status_.stragglers = std::move(ranks); }
  void ended(const Outcome& outcome);

  /// As it is now; each call counts as one writing.
  HeadStatus at(Instant now, Ticks ticks);

 private:
  struct Mark {
    Ticks when;
    std::int64_t step;
  };
  std::optional<SlowestRank> slowest(Ticks now) const;
  std::int64_t step_now(std::size_t rank, Ticks now) const;
  void take_pace(Ticks now);

  HeadStatus status_;
  std::vector<std::string> host_of_rank_;
  std::vector<std::int64_t> steps_;  // by rank; -1: none reported, -2: lost
  std::vector<Ticks> heard_;         // when each rank told its step
  std::size_t leader_ = 0;           // the first rank that is not lost
  std::map<std::string, NodeUsage> usage_;
  std::deque<Mark> marks_;  // of the leader, a second apart at least
};

}  // namespace dlrun::job
