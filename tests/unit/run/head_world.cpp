#include "tests/unit/run/head_world.hpp"

#include "src/base/version.hpp"

namespace dlrun::job {

const std::string World::kThisVersion{dlrun::kVersion};

plan::Plan World::plan_of(int nodes, int ranks_per_node) {
  plan::Plan plan;
  plan.name = "job";
  plan.run_directory = "/run";
  for (int node = 0; node < nodes; ++node) {
    plan.nodes.push_back({.index = NodeIndex(node), .host = HostName(fmt::format("n{}", node + 1))});
    for (int local = 0; local < ranks_per_node; ++local) {
      plan::RankPlan rank;
      rank.rank = Rank(static_cast<int>(plan.ranks.size()));
      rank.role = "worker";
      rank.task_index = rank.rank.get();
      rank.node = NodeIndex(node);
      rank.local_rank = LocalRank(local);
      plan.ranks.push_back(std::move(rank));
    }
  }
  return plan;
}

World::World(plan::Plan plan, HeadSettings settings)
    : plan_(std::move(plan)), head_(std::make_shared<const plan::Plan>(plan_), std::move(settings), now_) {
  happen(event::Begun{});
}

void World::happen(Event event) {
  for (Action& action : head_.on(std::move(event), now_)) {
    if (const auto* wake = std::get_if<action::WakeAt>(&action)) timers_.emplace(wake->when, wake->timer);
    actions_.push_back(std::move(action));
  }
}

void World::pass(double seconds) {
  const Ticks until = now_ + std::chrono::duration_cast<Ticks::duration>(Seconds(seconds));
  while (!timers_.empty() && timers_.begin()->first <= until) {
    const auto [when, timer] = *timers_.begin();
    timers_.erase(timers_.begin());
    now_ = std::max(now_, when);
    happen(event::Woken{timer});
  }
  now_ = until;
}

void World::live(double seconds) {
  for (double past = 0; past < seconds; past += 1) {
    for (const plan::NodePlan& node : plan_.nodes) say(node.index.get(), from::Alive{});
    pass(std::min(1.0, seconds - past));
  }
}

void World::arrive() {
  for (const plan::NodePlan& node : plan_.nodes) connect(node.index.get());
  for (const plan::NodePlan& node : plan_.nodes) ready(node.index.get());
}

void World::start() {
  arrive();
  for (const plan::RankPlan& rank : plan_.ranks) start_rank(rank.rank.get());
}

void World::start_rank(int rank) {
  const plan::RankPlan& planned = plan_.ranks.at(static_cast<std::size_t>(rank));
  say(planned.node.get(),
      from::Started{.rank = planned.rank, .pid = 1000 + rank, .program = "/bin/train", .processors = {rank}});
}

void World::exit_rank(int rank, int code, int signal) {
  const plan::RankPlan& planned = plan_.ranks.at(static_cast<std::size_t>(rank));
  const ExitStatus status{.exit_code = code, .signal = signal};
  say(planned.node.get(),
      from::Exited{.rank = planned.rank, .code = code, .signal = signal, .text = status.text()});
}

void World::fail_rank(int rank, int code, std::string reason) {
  const plan::RankPlan& planned = plan_.ranks.at(static_cast<std::size_t>(rank));
  say(planned.node.get(), from::Failed{.rank = planned.rank, .code = code, .reason = std::move(reason)});
}

void World::end_node(int node) {
  say(node, from::Clean{});
  say(node, from::Done{});
  close(node);
}

void World::end_well() {
  for (const plan::RankPlan& rank : plan_.ranks) exit_rank(rank.rank.get());
  for (const plan::NodePlan& node : plan_.nodes) end_node(node.index.get());
}

bool World::closed(int node) const {
  const auto all = actions<action::CloseStream>();
  return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.node == NodeIndex(node); });
}

std::vector<std::string> World::notes() const {
  std::vector<std::string> out;
  for (const action::ShowNote& note : actions<action::ShowNote>()) out.push_back(note.text);
  return out;
}

std::vector<std::string> World::phases() const {
  std::vector<std::string> out;
  for (const action::ShowPhase& phase : actions<action::ShowPhase>()) out.push_back(phase.text);
  return out;
}

std::vector<Json> World::recorded(const std::string& name) const {
  std::vector<Json> out;
  for (const action::Record& record : actions<action::Record>())
    if (record.event.value("event", "") == name) out.push_back(record.event);
  return out;
}

}  // namespace dlrun::job
