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
    : limit_(plan::stage_limit(plan.stage.items)), began_(began), round_began_(began) {
  for (const plan::NodePlan& node : plan.nodes) hosts_.emplace(node.index.get(), node.host.get());
  for (const plan::StageIn& item : plan.stage.items) names_.push_back(item.name);
}

StageWatch::StageWatch(const plan::Plan& plan, NodeIndex node, const Json& sources, Ticks began)
    : StageWatch(plan, began) {
  std::erase_if(hosts_, [&](const auto& each) { return each.first != node.get(); });
  lead_ = node.get();
  if (surveyed(sources)) lead_surveyed_ = false;
}

// A node that joins says again what others have said.
Result<void> StageWatch::surveyed(const Json& sources) {
  if (lead_surveyed_ || sources.size() != names_.size())
    return fail(ErrorKind::internal, "message 'stage_sources' came twice, or not for all items");
  sizes_.clear();
  for (const Json& source : sources)
    sizes_.push_back(TRY(field<std::uint64_t>(source, "bytes", "message 'stage_sources'")));
  sources_ = sources;
  surveyed_ = lead_surveyed_ = true;
  return {};
}

std::vector<NodeIndex> StageWatch::waiting() const {
  std::vector<NodeIndex> out;
  for (const auto& [node, host] : hosts_)
    if (!done_.contains(node)) out.emplace_back(node);
  return out;
}

std::vector<NodeIndex> StageWatch::lost(NodeIndex node, Ticks now) {
  hosts_.erase(node.get());
  done_.erase(node.get());
  dropping_.erase(node.get());
  std::vector<NodeIndex> out = waiting();
  if (out.empty()) return out;
  needs_.clear();
  surveyed_ = lead_surveyed_ = false;
  round_began_ = now;
  std::erase_if(out, [&](NodeIndex each) { return is_dropping(each); });
  for (const NodeIndex each : out) {
    moved_.erase(each.get());
    dropping_.insert(each.get());
  }
  return out;
}

void StageWatch::dropped(NodeIndex node) {
  dropping_.erase(node.get());
  if (const auto left = waiting(); !left.empty()) lead_ = left.front().get();
}

bool StageWatch::all_told() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [&](const auto& each) {
    return needs_.contains(each.first) || done_.contains(each.first);
  });
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
    if (node == lead_ || !needs.items.empty()) nodes.push_back(node);
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
  dropped(node);
}

// The last node's bytes count: when it has all, all have.
std::string StageWatch::phase(Ticks now) const {
  std::string out = "staging " + shown(names_);
  if (!all_told() || any_is_dropping()) return out + ": finding out what each node lacks";
  std::optional<std::int64_t> least;
  for (const auto& [node, needs] : needs_) {
    if (needs.items.empty()) continue;
    const auto moved = moved_.find(node);
    const std::int64_t bytes = moved == moved_.end() ? 0 : moved->second;
    least = std::min(least.value_or(bytes), bytes);
  }
  const Seconds past = now - round_began_;
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
  if (limit_.count() <= 0 || now - round_began_ < limit_) return {};
  return waiting();
}

std::string StageWatch::timeout_text() const {
  std::vector<std::string> waiting;
  for (const auto& [node, host] : hosts_)
    if (!done_.contains(node)) waiting.push_back(host);
  return fmt::format("staging {} did not end within {} (stage.time-limit){}", shown(names_),
                     format_duration(limit_),
                     waiting.size() > 1 ? "; not ready: " + shown(std::move(waiting)) : std::string());
}

}  // namespace dlrun::job
