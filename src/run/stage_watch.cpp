#include "src/run/stage_watch.hpp"

#include <algorithm>

#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::job {
namespace {

constexpr std::size_t kMaxShown = 8;

std::string shown(std::vector<std::string> names) {
  if (names.size() > kMaxShown) {
    const std::size_t more = names.size() - kMaxShown;
    names.resize(kMaxShown);
    names.push_back(fmt::format("{} more", more));
  }
  return join(names, ", ");
}

}  // namespace

StageWatch::StageWatch(const plan::Plan& plan, Ticks began)
    : limit_(plan::stage_limit(plan.stage.items)), began_(began) {
  for (const plan::NodePlan& node : plan.nodes) hosts_.push_back(node.host.get());
  for (const plan::StageIn& item : plan.stage.items) names_.push_back(item.name);
}

Result<void> StageWatch::surveyed(const Json& sources) {
  if (surveyed_ || sources.size() != names_.size())
    return fail(ErrorKind::internal, "message 'stage_sources' came twice, or not for all items");
  for (const Json& source : sources)
    sizes_.push_back(TRY(field<std::uint64_t>(source, "bytes", "message 'stage_sources'")));
  surveyed_ = true;
  return {};
}

Result<void> StageWatch::needs(NodeIndex node, protocol::from_agent::StageNeeds needs) {
  for (const int item : needs.items)
    if (item < 0 || item >= static_cast<int>(names_.size()))
      return fail(ErrorKind::internal, "message 'stage_needs': item {} of {}", item, names_.size());
  if (!surveyed_ || !needs_.emplace(node.get(), std::move(needs)).second)
    return fail(ErrorKind::internal, "message 'stage_needs' was not asked for");
  return {};
}

std::uint64_t StageWatch::bytes_of_chain() const {
  std::set<int> items;
  for (const auto& [node, needs] : needs_) items.insert(needs.items.begin(), needs.items.end());
  std::uint64_t out = 0;
  for (const int item : items) out += sizes_[static_cast<std::size_t>(item)];
  return out;
}

std::vector<std::pair<NodeIndex, protocol::to_agent::StageChain>> StageWatch::chain(
    const plan::Plan& plan) const {
  std::set<int> items;
  std::vector<int> nodes;
  for (const auto& [node, needs] : needs_) {
    items.insert(needs.items.begin(), needs.items.end());
    if (node == 0 || !needs.items.empty()) nodes.push_back(node);
  }
  std::vector<std::pair<NodeIndex, protocol::to_agent::StageChain>> out;
  for (const auto& [node, needs] : needs_) {
    protocol::to_agent::StageChain told;
    const auto place = std::find(nodes.begin(), nodes.end(), node);
    if (place != nodes.end() && !items.empty()) {
      told.items = {items.begin(), items.end()};
      if (std::next(place) != nodes.end()) told.next = NodeIndex(*std::next(place));
    }
    if (place != nodes.end() && place != nodes.begin()) {
      const int previous = *std::prev(place);
      told.previous = NodeIndex(previous);
      told.port = needs_.at(previous).port;
      told.addresses = needs_.at(previous).addresses;
      told.addresses.insert(told.addresses.begin(),
                            plan.nodes[static_cast<std::size_t>(previous)].reached_by());
    }
    out.emplace_back(NodeIndex(node), std::move(told));
  }
  return out;
}

void StageWatch::staged(NodeIndex node, std::int64_t bytes) {
  moved_[node.get()] = bytes;
  done_.insert(node.get());
}

// The last node's bytes count: when it has all, all have.
std::string StageWatch::phase(Ticks now) const {
  std::string out = "staging " + shown(names_);
  if (!all_told()) return out + ": finding out what each node lacks";
  std::optional<std::int64_t> least;
  for (const auto& [node, needs] : needs_) {
    if (needs.items.empty()) continue;
    const auto moved = moved_.find(node);
    const std::int64_t bytes = moved == moved_.end() ? 0 : moved->second;
    least = std::min(least.value_or(bytes), bytes);
  }
  const Seconds past = now - began_;
  if (least) {
    const auto whole = static_cast<std::int64_t>(bytes_of_chain());
    const auto done = static_cast<std::uint64_t>(std::min(*least, whole));
    out += fmt::format(": {} of {}", format_size(done), format_size(static_cast<std::uint64_t>(whole)));
    if (past.count() > 0)
      out += fmt::format(" at {}/s",
                         format_size(static_cast<std::uint64_t>(static_cast<double>(done) / past.count())));
  }
  return out + fmt::format(", {} of {} nodes are ready", done_.size(), hosts_.size());
}

std::vector<NodeIndex> StageWatch::late(Ticks now) const {
  std::vector<NodeIndex> out;
  if (limit_.count() <= 0 || now - began_ < limit_) return out;
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (!done_.contains(static_cast<int>(i))) out.emplace_back(static_cast<int>(i));
  return out;
}

std::string StageWatch::timeout_text() const {
  std::vector<std::string> waiting;
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (!done_.contains(static_cast<int>(i))) waiting.push_back(hosts_[i]);
  return fmt::format("staging {} did not end within {} (stage.time-limit){}", shown(names_),
                     format_duration(limit_),
                     waiting.size() > 1 ? "; not ready: " + shown(std::move(waiting)) : std::string());
}

}  // namespace dlrun::job
