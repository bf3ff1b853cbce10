#include "src/run/checker.hpp"

#include <algorithm>
#include <limits>

#include "src/base/units.hpp"
#include "src/health/compare.hpp"
#include "src/health/pair_rounds.hpp"

namespace dlrun::job {
namespace {

using namespace protocol;  // NOLINT: the messages are what this file is about

constexpr Seconds kAnswerMargin{5};  // beyond the agent's own limit, for the way
constexpr Seconds kArrival{
    10};  // for the last, once most nodes have an agent; or as long as most took, thrice
constexpr Seconds kReachLimit{8};
constexpr double kSlow = 0.25;  // of the median
constexpr int kConfirmations = 2;
constexpr Seconds kRingTime{0.4}, kRingLimit{18};  // the latter with all that a ring waits for
constexpr std::size_t kMinChunk = 4 << 10, kMaxChunk = 64 << 10, kRingMemory = 64 << 20;

struct Rounds {
  int count;
  Seconds time;
};
// Up to so many nodes try all others; more try some. A machine knows about a thousand neighbours.
std::size_t all_try_all(health::Level level) {
  return level == health::Level::quick ? 33 : 65;
}

Rounds rounds_for(health::Level level) {
  return level == health::Level::quick ? Rounds{3, Seconds(0.2)} : Rounds{8, Seconds(0.5)};
}

void keep_best(std::optional<double>& best, double rate) {
  best = std::max(best.value_or(0), rate);
}

}  // namespace

Checker::Checker(const plan::Plan& plan, health::Level level, std::string directory, std::string token,
                 Ticks began)
    : level_(level),
      directory_(std::move(directory)),
      token_(std::move(token)),
      began_(began),
      start_timeout_(plan.limits.start_timeout) {
  for (const plan::NodePlan& node : plan.nodes)
    nodes_.push_back({.host = node.host.get(), .name = node.reached_by()});
}

Checker::Sends Checker::no_agent(NodeIndex node, const std::string& why, Now now, health::FaultOf of) {
  Sends out;
  if (!at(node).is_out()) at(node).fault_of = of;
  lose(at(node), why);
  advance(now.ticks, out);
  return out;
}

Checker::Sends Checker::said(NodeIndex node, const FromAgent& message, Now now) {
  Sends out;
  if (at(node).is_out()) return out;
  std::visit([&](const auto& what) { on(node, what, now, out); }, message);
  advance(now.ticks, out);
  return out;
}

Checker::Sends Checker::passed(Now now) {
  Sends out;
  if (!done()) lose_the_late(now.ticks);
  advance(now.ticks, out);
  return out;
}

void Checker::lose(Node& node, const std::string& why) {
  if (node.no_agent.empty()) node.no_agent = why;
  waiting_.erase(static_cast<int>(&node - nodes_.data()));
}

// Messages.

void Checker::on(NodeIndex node, const from_agent::Ready&, Now now, Sends& out) {
  at(node).ready = now.ticks;
  at(node).asked_time = now.wall;
  out.push_back({{node}, to_agent::AskClock{}});
}

// It read its clock somewhere between question and answer.
void Checker::on(NodeIndex node, const from_agent::Clock& clock, Now now, Sends& out) {
  const Seconds asked = at(node).asked_time;
  at(node).values["clock"] = {{"skew", (clock.now - (asked + now.wall) / 2).count()},
                              {"uncertain", ((now.wall - asked) / 2).count()}};
  to_agent::CheckNode question{
      .full = level_ == health::Level::full, .directory = directory_, .names = {}, .token = token_};
  for (const Node& each : nodes_) question.names.push_back(each.name);
  out.push_back({{node}, std::move(question)});
}

void Checker::on(NodeIndex node, const from_agent::NodeChecked& checked, Now, Sends&) {
  Node& it = at(node);
  it.answered = true;
  for (const auto& [name, values] : checked.values.items()) it.values[name] = values;
  it.port = checked.port, it.addresses = checked.addresses;
}

void Checker::on(NodeIndex node, const from_agent::PeersChecked& checked, Now, Sends&) {
  if (waiting_.erase(node.get()) == 0) return;
  Node& it = at(node);
  for (const from_agent::PeerChecked& peer : checked.peers) {
    if (peer.node.get() < 0 || peer.node.get() >= static_cast<int>(nodes_.size())) continue;
    Node& other = at(peer.node);
    if (stage_ == Stage::reaching) {
      ++it.tried, ++other.asked_by;
      if (peer.problem.empty()) ++other.reached_by;
      if (!peer.problem.empty() && it.unreachable.empty()) it.problem = peer.problem;
      if (!peer.problem.empty()) it.unreachable.push_back(other.host);
    } else if (peer.problem.empty() && peer.took.count() > 0) {
      const double rate = static_cast<double>(peer.bytes) / peer.took.count();
      keep_best(it.send, rate), keep_best(other.receive, rate);
    }
  }
}

// Time.

// Most nodes tell how long it takes here; before there are most, the job's own limit counts.
Seconds Checker::arrival_limit() const {
  if (!most_came_) return start_timeout_;
  return std::min(start_timeout_, std::max(kArrival, 3 * *most_came_));
}

void Checker::lose_the_late(Ticks now) {
  const Seconds past = now - began_, limit = health::limit_of(level_) + kAnswerMargin;
  for (Node& node : nodes_) {
    if (node.is_over()) continue;
    if (!node.ready && past > arrival_limit())
      lose(node, fmt::format("no agent from there within {}", format_duration(arrival_limit())));
    if (node.ready && now - *node.ready > limit)
      lose(node, fmt::format("its agent did not answer within {}", format_duration(limit)));
  }
  if (waiting_.empty() || now < stage_ends_) return;
  for (const int node : std::exchange(waiting_, {}))
    lose(at(node), "its agent did not answer while it tried to reach other nodes");
}

// Stages.

void Checker::advance(Ticks now, Sends& out) {
  const auto came = static_cast<std::size_t>(std::count_if(
      nodes_.begin(), nodes_.end(), [](const Node& node) { return node.ready || node.is_out(); }));
  if (!most_came_ && 4 * came >= 3 * nodes_.size()) most_came_ = now - began_;
  if (stage_ == Stage::measuring &&
      std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.is_over(); }))
    return reach(now, out);
  if (stage_ == Stage::measuring || done() || !waiting_.empty()) return;
  if (stage_ == Stage::confirming) return confirm(now, out);
  if (stage_ == Stage::bisecting) return bisect(now, out);
  next_round(now, out);
}

void Checker::begin_stage(Ticks now, Seconds limit) {
  stage_ends_ = now + std::chrono::duration_cast<Ticks::duration>(limit);
}

to_agent::CheckedPeer Checker::way_to(int node) const {
  const Node& it = nodes_[static_cast<std::size_t>(node)];
  std::vector<std::string> addresses = it.addresses;
  addresses.insert(addresses.begin(), it.name);
  return {NodeIndex(node), std::move(addresses), it.port};
}

void Checker::ask(NodeIndex node, const std::vector<int>& peers, Seconds time, Sends& out) {
  to_agent::CheckPeers question{.token = token_, .send = time, .peers = {}};
  for (const int peer : peers) question.peers.push_back(way_to(peer));
  waiting_.insert(node.get());
  out.push_back({{node}, std::move(question)});
}

// Those with an agent, where others can call.
std::vector<int> Checker::present() const {
  std::vector<int> out;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (!nodes_[i].is_out() && nodes_[i].port != 0) out.push_back(static_cast<int>(i));
  return out;
}

// All others, or of many those at distances that double: each node is tried by about as many.
std::vector<int> Checker::peers_of(std::size_t place, const std::vector<int>& nodes) const {
  std::vector<int> out;
  for (std::size_t distance = 1; distance < nodes.size();
       distance = nodes.size() <= all_try_all(level_) ? distance + 1 : distance * 2)
    out.push_back(nodes[(place + distance) % nodes.size()]);
  return out;
}

void Checker::reach(Ticks now, Sends& out) {
  stage_ = Stage::reaching;
  const std::vector<int> nodes = present();
  if (nodes.size() < 2) return void(stage_ = Stage::done);
  begin_stage(now, kReachLimit);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    ask(NodeIndex(nodes[i]), peers_of(i, nodes), Seconds(0), out);
}

void Checker::send_in_pairs(const std::vector<std::pair<int, int>>& pairs, Seconds time, Ticks now,
                            Sends& out) {
  begin_stage(now, 4 * time + kReachLimit);
  for (const auto& [a, b] : pairs) {
    ask(NodeIndex(a), {b}, time, out);
    ask(NodeIndex(b), {a}, time, out);
  }
}

void Checker::next_round(Ticks now, Sends& out) {
  stage_ = Stage::rounds;
  const std::vector<int> nodes = present();
  const int count = static_cast<int>(nodes.size()), all = health::rounds_of(count);
  const Rounds rounds = rounds_for(level_);
  if (rounds_ >= std::min(all, rounds.count)) return confirm(now, out);
  // Spread over all rounds, so that partners are near and far.
  const int round = rounds_++ * all / std::min(all, rounds.count);
  std::vector<std::pair<int, int>> pairs = health::pairs_of_round(count, round);
  for (auto& [a, b] : pairs) a = nodes[static_cast<std::size_t>(a)], b = nodes[static_cast<std::size_t>(b)];
  send_in_pairs(pairs, rounds.time, now, out);
}

std::vector<int> Checker::slow_nodes() const {
  std::vector<double> sends, receives;
  for (const Node& node : nodes_) {
    if (node.send) sends.push_back(*node.send);
    if (node.receive) receives.push_back(*node.receive);
  }
  const double send = kSlow * health::median(sends), receive = kSlow * health::median(receives);
  std::vector<int> out;
  for (const int i : present()) {
    const Node& node = nodes_[static_cast<std::size_t>(i)];
    if (node.send.value_or(send) < send || node.receive.value_or(receive) < receive) out.push_back(i);
  }
  return out;
}

// A machine that is busy makes a node look slow: each slow one gets a partner that is not, and nobody else
// sends meanwhile.
void Checker::confirm(Ticks now, Sends& out) {
  stage_ = Stage::confirming;
  const std::vector<int> slow = slow_nodes();
  if (slow.empty() || confirmations_++ == kConfirmations) return begin_bisection(now, out);
  std::vector<int> partners = present();
  std::erase_if(partners, [&](int node) { return std::find(slow.begin(), slow.end(), node) != slow.end(); });
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t i = 0; i < std::min(slow.size(), partners.size()); ++i)
    pairs.emplace_back(slow[i], partners[i]);
  if (pairs.empty()) return begin_bisection(now, out);
  send_in_pairs(pairs, 2 * rounds_for(level_).time, now, out);
}

// Allreduces.

void Checker::on(NodeIndex node, const from_agent::RingChecked& checked, Now, Sends&) {
  if (checked.ring != ring_ || waiting_.erase(node.get()) == 0) return;
  const bool ran = checked.problem.empty() && checked.took.count() > 0;
  at(node).ring = ran ? static_cast<double>(checked.bytes) / checked.took.count() : 0;
}

// Of those that are not known to be slow already.
void Checker::begin_bisection(Ticks now, Sends& out) {
  stage_ = Stage::done;
  if (level_ == health::Level::quick) return;
  std::vector<int> nodes = present();
  const std::vector<int> slow = slow_nodes();
  std::erase_if(nodes, [&](int node) { return std::find(slow.begin(), slow.end(), node) != slow.end(); });
  bisection_.emplace(std::move(nodes));
  stage_ = Stage::bisecting;
  bisect(now, out);
}

void Checker::bisect(Ticks now, Sends& out) {
  if (ring_ > 0) {
    std::vector<double> rates;
    for (const std::vector<int>& group : bisection_->groups()) rates.push_back(rate_of(group));
    bisection_->measured(rates);
  }
  if (bisection_->groups().empty()) return void(stage_ = Stage::done);
  ++ring_;
  for (Node& node : nodes_) node.ring.reset();
  begin_stage(now, kRingLimit);
  for (const std::vector<int>& group : bisection_->groups()) ask_group(group, out);
}

// Rings of one step have one number: no node is in two of them.
void Checker::ask_group(const std::vector<int>& group, Sends& out) {
  const std::size_t size = group.size();
  const std::size_t chunk = std::clamp(kRingMemory / nodes_.size(), kMinChunk, kMaxChunk);
  for (std::size_t place = 0; place < size; ++place) {
    waiting_.insert(group[place]);
    out.push_back({{NodeIndex(group[place])},
                   to_agent::CheckRing{.token = token_,
                                       .ring = ring_,
                                       .place = static_cast<int>(place),
                                       .size = static_cast<int>(size),
                                       .chunk = static_cast<int>(chunk / sizeof(float) * sizeof(float)),
                                       .time = kRingTime,
                                       .next = way_to(group[(place + 1) % size])}});
  }
}

double Checker::rate_of(const std::vector<int>& group) const {
  double out = std::numeric_limits<double>::infinity();
  for (const int node : group) out = std::min(out, nodes_[static_cast<std::size_t>(node)].ring.value_or(0));
  return out;
}

// What came of it.

std::string Checker::phase() const {
  const auto answered =
      std::count_if(nodes_.begin(), nodes_.end(), [](const Node& n) { return n.is_over(); });
  if (stage_ != Stage::measuring) return fmt::format("checking the network between {} nodes", nodes_.size());
  return fmt::format("checking {} node{}: {} answered", nodes_.size(), nodes_.size() == 1 ? "" : "s",
                     answered);
}

void Checker::tell_faults(std::vector<health::NodeAnswers>& answers) const {
  if (!bisection_->whole()) return;
  const Json all{{"rate", *bisection_->whole()}, {"usual", bisection_->usual()}};
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (!nodes_[i].is_out()) answers[i].values["allreduce"] = all;
  for (const health::Bisection::Fault& fault : bisection_->faults())
    for (const int node : fault.nodes) {
      Json others = Json::array();
      for (const int other : fault.nodes)
        if (other != node) others.push_back(nodes_[static_cast<std::size_t>(other)].host);
      Json& values = answers[static_cast<std::size_t>(node)].values["allreduce"];
      values["slow_rate"] = fault.rate, values["slow_with"] = std::move(others);
    }
}

health::Report Checker::report(Ticks now) const {
  std::vector<health::NodeAnswers> answers;
  for (const Node& node : nodes_) {
    answers.push_back(
        {.host = node.host, .no_agent = node.no_agent, .fault_of = node.fault_of, .values = node.values});
    if (node.tried == 0 && node.asked_by == 0) continue;
    Json network{{"tried", node.tried},
                 {"unreachable", node.unreachable},
                 {"problem", node.problem},
                 {"asked_by", node.asked_by},
                 {"reached_by", node.reached_by}};
    network["send"] = node.send ? Json(*node.send) : Json(nullptr);
    network["receive"] = node.receive ? Json(*node.receive) : Json(nullptr);
    answers.back().values["network"] = std::move(network);
  }
  if (bisection_) tell_faults(answers);
  health::Report out = health::judge(level_, directory_, answers);
  out.took = now - began_;
  return out;
}

}  // namespace dlrun::job
