#include "src/agent/ranks.hpp"

#include <algorithm>

#include "src/plan/run_directory.hpp"

namespace dlrun::agent {
namespace {

Environment environment_of(const plan::RankPlan& rank, const Ranks::Base& base, const RankWiring& wiring) {
  const plan::Plan& plan = base.slice->plan;
  Environment environment = base.environment;
  environment.merge(plan.environment);
  environment.merge(rank.environment);
  environment.set("DLRUN_CONTROL", base.control_path);
  environment.set("DLRUN_CHECKPOINT_REQUEST", plan::checkpoint_request_path(plan));
  apply(wiring, environment);
  return environment;
}

Result<Cores> cores_for(const std::deque<RankState>& ranks) {
  const bool bound = std::any_of(ranks.begin(), ranks.end(),
                                 [](const RankState& rank) { return rank.plan.cpus.has_value(); });
  return bound ? usable_cores() : Result<Cores>(Cores{});
}

}  // namespace

void Ranks::add(const plan::NodeSlice& slice) {
  for (const plan::RankPlan& rank : slice.plan.ranks)
    ranks_.push_back({rank, nullptr, {}, static_cast<int>(ranks_.size())});
}

Result<void> Ranks::start(const Base& base,
                          const std::function<void(const RankState&, const std::vector<int>&)>& started) {
  const Cores cores = TRY(cores_for(ranks_));
  for (RankState& rank : ranks_) {
    auto processors = start_one(rank, base, cores);
    if (!processors) {
      processors.error().where = fmt::format("{} {}", rank.plan.role, rank.plan.task_index);
      return fail(processors.error());
    }
    started(rank, *processors);
  }
  return {};
}

Result<std::vector<int>> Ranks::start_one(RankState& rank, const Base& base, const Cores& cores) {
  const RankWiring wiring = base.mpi != nullptr ? TRY(base.mpi->wire(rank.plan.rank)) : RankWiring{};
  RankProcess::Start start{.environment = environment_of(rank.plan, base, wiring),
                           .working_directory = base.slice->plan.working_directory,
                           .log_path = plan::rank_log_path(base.slice->plan, rank.plan),
                           .inherited_fds = {},
                           .processors = {}};
  for (const UniqueFd& fd : wiring.child_fds) start.inherited_fds.push_back(fd.get());
  if (rank.plan.cpus) start.processors = TRY(processors_of(cores, *rank.plan.cpus));
  rank.process = TRY(RankProcess::start(rank.plan, start, loop_, callbacks_));
  if (base.mpi != nullptr) base.mpi->started(rank.plan.rank);
  return start.processors;
}

RankState* Ranks::find(Rank rank) {
  const auto found = std::find_if(ranks_.begin(), ranks_.end(),
                                  [&](const RankState& state) { return state.plan.rank == rank; });
  return found == ranks_.end() ? nullptr : &*found;
}

bool Ranks::any_running() const {
  return !pids().empty();
}

std::vector<pid_t> Ranks::pids() const {
  std::vector<pid_t> out;
  for (const RankState& rank : ranks_)
    if (rank.process && rank.process->running()) out.push_back(rank.process->pid());
  return out;
}

void Ranks::signal(int number) const {
  for (const RankState& rank : ranks_)
    if (rank.process) rank.process->signal(number);
}

void Ranks::set_output(Flow flow) {
  for (RankState& rank : ranks_)
    if (rank.process) flow == Flow::on ? rank.process->resume_output() : rank.process->pause_output();
}

void Ranks::close_output() {
  for (RankState& rank : ranks_)
    if (rank.process) rank.process->close_output();
}

}  // namespace dlrun::agent
