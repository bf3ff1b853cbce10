#include "src/agent/ranks.hpp"

#include <algorithm>

#include "schedulers/gpus/bus_ids.hpp"
#include "src/agent/memory_nodes.hpp"
#include "src/agent/own_program.hpp"
#include "src/plan/run_directory.hpp"

namespace dlrun::agent {
namespace {

// What is set but empty counts as set.
void set_where_unset(Environment& environment, const plan::EnvironmentChanges& defaults) {
  for (const auto& [name, value] : defaults)
    if (!environment.find(name)) environment.set(name, value);
}

Environment environment_of(const plan::RankPlan& rank, const Ranks::Base& base,
                           const MpiBootstrap& bootstrap) {
  const plan::Plan& plan = base.slice->plan;
  Environment environment = base.environment;  // the user's, as the prolog left it
  set_where_unset(environment, rank.defaults);
  environment.merge(plan.environment);
  environment.merge(rank.environment);
  set_where_unset(environment, base.interface_variables);
  environment.set("DLRUN_CONTROL", base.control_path);
  environment.set("DLRUN_CHECKPOINT_REQUEST", plan::checkpoint_request_path(plan));
  apply(bootstrap, environment);
  return environment;
}

// Processors near the rank's GPUs. One that cannot be found is near nothing: binding still divides the node.
Result<Processors> near_gpus(const plan::RankPlan& rank, const GpuBusIds& gpus) {
  Processors out;
  for (const std::string& name : rank.gpus.value_or(std::vector<std::string>{})) {
    const std::string bus_id = gpus.of(name);
    if (bus_id.empty()) continue;
    for (const int processor : TRY(processors_near(bus_id)))
      if (std::find(out.begin(), out.end(), processor) == out.end()) out.push_back(processor);
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool any_bound_with_gpus(const std::deque<RankState>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [](const RankState& rank) {
    return rank.plan.cpus && rank.plan.gpus && !rank.plan.gpus->empty();
  });
}

// By position in `ranks`; empty for those that are not bound.
Result<std::vector<Processors>> processors_for(const std::deque<RankState>& ranks,
                                               const Environment& environment) {
  if (ranks.size() == 1 && ranks.front().plan.cpus && ranks.front().plan.cpus->of == 1)
    return std::vector<Processors>{TRY(usable_processors())};
  GpuBusIds gpus;
  if (any_bound_with_gpus(ranks)) gpus = GpuBusIds::of_this_machine(environment);
  std::vector<CpuRequest> requests;
  for (const RankState& rank : ranks)
    if (rank.plan.cpus) requests.push_back({*rank.plan.cpus, TRY(near_gpus(rank.plan, gpus))});
  std::vector<Processors> out(ranks.size());
  if (requests.empty()) return out;
  std::vector<Processors> divided = TRY(divide(TRY(usable_cores()), requests));
  for (std::size_t i = 0, next = 0; i < ranks.size(); ++i)
    if (ranks[i].plan.cpus) out[i] = std::move(divided[next++]);
  return out;
}

}  // namespace

void Ranks::add(const plan::NodeSlice& slice) {
  for (const plan::RankPlan& rank : slice.plan.ranks)
    ranks_.push_back({rank, nullptr, static_cast<int>(ranks_.size())});
}

Result<void> Ranks::start(Base base,
                          const std::function<void(const RankState&, const Processors&)>& started) {
  const std::vector<Processors> processors = TRY(processors_for(ranks_, base.environment));
  TRY(apply_huge_pages(base.slice->plan.memory.huge_pages));
  const WithLimits limits(base.limits);
  for (RankState& rank : ranks_) {
    const Processors& own = processors[static_cast<std::size_t>(rank.member)];
    if (auto running = start_one(rank, base, own); !running) {
      running.error().where = fmt::format("{} {}", rank.plan.role, rank.plan.task_index);
      return running;
    }
    started(rank, own);
  }
  return {};
}

Result<void> Ranks::start_one(RankState& rank, Base& base, const Processors& processors) {
  const MpiBootstrap bootstrap =
      base.mpi != nullptr ? TRY(base.mpi->bootstrap(rank.plan.rank)) : MpiBootstrap{};
  RankProcess::Start start{.environment = environment_of(rank.plan, base, bootstrap),
                           .working_directory = base.slice->plan.working_directory,
                           .log = std::move(base.logs.at(static_cast<std::size_t>(rank.member))),
                           .log_path = plan::rank_log_path(base.slice->plan, rank.plan),
                           .input_fd = rank.plan.rank == base.input_rank ? base.input.get() : -1,
                           .inherited_fds = {},
                           .processors = processors,
                           .memory = TRY(memory_binding(base.slice->plan.memory, processors)),
                           .program = own_program(rank.plan.argv),
                           .open_files = base.open_files};
  // A site's launcher may hand its ranks more than the PMI that we know of.
  if (base.slice->plan.mpi == plan::MpiProtocol::native)
    start.other_descriptors = OtherDescriptors::as_marked;
  for (const UniqueFd& fd : bootstrap.child_fds) start.inherited_fds.push_back(fd.get());
  // Now they are its own to open. Later ones of the node are still held: nobody gets them by chance.
  if (rank.plan.port) base.ports->release(*rank.plan.port);
  if (rank.plan.rank == Rank(0) && base.slice->plan.rendezvous_port)
    base.ports->release(*base.slice->plan.rendezvous_port);
  rank.process = TRY(RankProcess::start(rank.plan, std::move(start), loop_, writer_, callbacks_));
  if (base.mpi != nullptr) base.mpi->started(rank.plan.rank);
  return {};
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
