// What the head does where somebody asks for other nodes: ranks of a node leave behind a step, and the others
// take their shards. Whatever cannot be is refused as a whole, with the reason.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "src/base/strings.hpp"
#include "src/run/head.hpp"

namespace dlrun::job {
namespace {

Error refusal(ErrorKind kind, std::string what, std::string hint = {}) {
  return {.kind = kind, .what = std::move(what), .hint = std::move(hint)};
}

// "c3" may be "c3.cluster", as schedulers and people have it.
bool is_named(const std::string& host, const std::string& name) {
  return host == name || host.starts_with(name + ".") || name.starts_with(host + ".");
}

}  // namespace

void Head::on_hosts_asked(event::HostsAsked& asked) {
  if (is_over()) return;
  const HostsRequest& request = asked.request;
  act(action::Record{{{"event", "hosts_asked"}, {"request", to_json(request)}}});
  if (auto why = cannot_change())
    hosts_asked_.refuse(request.id, std::move(*why));
  else if (request.change == HostsChange::leave)
    begin_leaving(request);
  else
    begin_joining(request);
  tell_of_hosts();
}

void Head::tell_of_hosts() {
  if (!hosts_asked_.empty()) act(action::WriteHostAnswers{hosts_asked_.document()});
}

std::optional<Error> Head::cannot_change() const {
  if (!regrouping_)
    return refusal(ErrorKind::usage, "the run is not elastic: no node can leave or join",
                   "write elastic: {min-nodes: 1} in the job file of the next run (dlrun-job(5))");
  if (failures_.decided() || supervisor_.stop_was_asked())
    return refusal(ErrorKind::unavailable, "the run is ending");
  if (shards_ == 0)
    return refusal(ErrorKind::unavailable, "the ranks are not training yet",
                   "try again when dlrun status shows a step");
  return std::nullopt;
}

std::vector<Rank> Head::members_on(NodeIndex node) const {
  std::vector<Rank> out;
  for (const plan::RankPlan& rank : plan().ranks)
    if (rank.node == node && regrouping_->is_member(rank.rank)) out.push_back(rank.rank);
  return out;
}

bool Head::has_members(const std::string& host) const {
  const auto& nodes = plan().nodes;
  return std::any_of(nodes.begin(), nodes.end(), [&](const plan::NodePlan& node) {
    return node.host.get() == host && !members_on(node.index).empty();
  });
}

// A host that has come back, or whose ranks were started again, has several nodes.
Result<std::vector<NodeIndex>> Head::nodes_to_leave(const std::vector<std::string>& hosts) const {
  std::vector<NodeIndex> out;
  std::vector<std::string> known;
  for (const plan::NodePlan& node : plan().nodes)
    if (!members_on(node.index).empty()) known.push_back(node.host.get());
  for (const std::string& host : hosts) {
    bool any = false;
    for (const plan::NodePlan& node : plan().nodes) {
      if (!is_named(node.host.get(), host) || members_on(node.index).empty()) continue;
      any = true;
      if (std::find(out.begin(), out.end(), node.index) == out.end()) out.push_back(node.index);
    }
    if (!any)
      return fail(refusal(ErrorKind::usage, fmt::format("no rank of the run is on host '{}'", host),
                          did_you_mean(host, known)));
  }
  return out;
}

void Head::begin_leaving(const HostsRequest& request) {
  const auto nodes = nodes_to_leave(request.hosts);
  if (!nodes) return hosts_asked_.refuse(request.id, nodes.error());
  std::vector<std::string> hosts;
  std::set<std::string> asked_anew;  // others were asked to leave before
  for (const NodeIndex node : *nodes) {
    const std::string& host = agents_[node].host;
    if (std::find(hosts.begin(), hosts.end(), host) == hosts.end()) hosts.push_back(host);
    if (!regrouping_->are_leaving(members_on(node))) asked_anew.insert(host);
  }
  if (!take_out(*nodes))
    return hosts_asked_.refuse(
        request.id,
        refusal(ErrorKind::allocation,
                fmt::format("without {} fewer nodes or ranks would be left than elastic requires: "
                            "min-nodes is {}, min-ranks is {}",
                            join(hosts, ", "), plan().elastic->min_nodes, plan().elastic->min_ranks),
                "dlrun stop without --hosts ends the run"));
  hosts_asked_.begin(request.id, hosts);
  nodes_wanted_ -= std::min(nodes_wanted_, asked_anew.size());
}

// Behind a step. Not where too few would be left.
bool Head::take_out(const std::vector<NodeIndex>& nodes) {
  std::vector<Rank> ranks;
  for (const NodeIndex node : nodes)
    for (const Rank rank : members_on(node)) ranks.push_back(rank);
  std::vector<Rank> gone = ranks;
  for (const plan::RankPlan& rank : plan().ranks)
    if (regrouping_->is_leaving(rank.rank)) gone.push_back(rank.rank);
  if (ranks.empty() || !regrouping_->can_spare(gone)) return false;
  for (const NodeIndex node : nodes) fill_no_place_on(agents_[node].host);
  regrouping_->begin_leaving(ranks);
  ask_for_change();
  return true;
}

// A scheduler or a user has told the agent of this node alone to end. Its agent waits some seconds for that.
bool Head::leaves_as_told(NodeIndex node, int signal) {
  if (!regrouping_) return false;
  if (agents_[node].done || agents_[node].gone) return true;
  if (joining_.find(node) == nullptr && members_on(node).empty()) return true;  // it has nobody to lose
  if (cannot_change() || !take_out({node})) return false;
  note(fmt::format("{}: the agent was told to end by {}: its ranks leave", agents_[node].host,
                   signal_text(signal)));
  return true;
}

void Head::ask_for_change() {
  if (!regrouping_ || failures_.decided() || supervisor_.stop_was_asked()) return;
  if (const auto ask = regrouping_->ask()) send(agents_.working(), *ask);
}

// The world that begins has other ranks: those that left are no loss.
void Head::apply_changes() {
  const Regrouping::Changes changes = regrouping_->take_changes();
  if (changes.left.empty() && changes.joined.empty()) return;
  lost_at_ = now_;
  std::map<std::string, std::vector<Rank>> left;  // of all agents of a host
  std::map<NodeIndex, std::vector<Rank>> joined;
  for (const Rank rank : changes.left) left[agents_[rank_plan(rank).node].host].push_back(rank);
  for (const Rank rank : changes.joined) joined[rank_plan(rank).node].push_back(rank);
  for (const auto& [host, ranks] : left) has_left(host, ranks);
  for (const auto& [node, ranks] : joined) has_joined(node, ranks);
  tell_of_hosts();
  fill_up();  // in place of a node that was told to end
}

void Head::has_left(const std::string& host, const std::vector<Rank>& ranks) {
  for (const Rank rank : ranks) {
    hangs_.detector().exited(rank, now_);
    ranks_.spared(rank);
  }
  losses_.push_back({.ranks = ranks,
                     .host = host,
                     .reason = "left on request",
                     .on_request = true,
                     .leads = regrouping_->first_left(),
                     .at = now_});
  act(action::Record{{{"event", "left"},
                      {"ranks", numbers_of(ranks)},
                      {"host", host},
                      {"reason", "on request"},
                      {"ranks_left", regrouping_->ranks_left()},
                      {"nodes_left", regrouping_->nodes_left()}}});
  note(fmt::format("{} on {} left on request; going on with {} ranks on {} nodes", names_of(ranks), host,
                   regrouping_->ranks_left(), regrouping_->nodes_left()));
  hosts_asked_.done(host, fmt::format("{} left", names_of(ranks)));
}

// Who waits for them to leave waits no more, and the node is not taken back.
void Head::lost_before_they_left(const std::vector<Rank>& ranks, const std::string& host,
                                 const std::string& reason) {
  if (has_members(host)) return;  // the others leave yet
  hosts_asked_.done(host, fmt::format("{} lost before {} left: {}", names_of(ranks),
                                      ranks.size() == 1 ? "it" : "they", reason));
  tell_of_hosts();
}

}  // namespace dlrun::job
