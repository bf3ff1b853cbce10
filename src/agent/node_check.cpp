#include "src/agent/node_check.hpp"

#include <utility>

#include "schedulers/node_identity.hpp"
#include "src/base/units.hpp"

namespace dlrun::agent {
namespace {

using protocol::to_agent::CheckedPeer;

std::vector<health::Peer> peers_of(const std::vector<CheckedPeer>& peers) {
  std::vector<health::Peer> out;
  for (const CheckedPeer& peer : peers) out.push_back({peer.addresses, peer.port});
  return out;
}

protocol::from_agent::PeersChecked answer_of(const std::vector<CheckedPeer>& peers,
                                             const std::vector<health::Transfer>& transfers) {
  protocol::from_agent::PeersChecked out;
  for (std::size_t i = 0; i < peers.size(); ++i)
    out.peers.push_back({.node = peers[i].node,
                         .problem = transfers[i].problem,
                         .connect = transfers[i].connect,
                         .bytes = transfers[i].bytes,
                         .took = transfers[i].took});
  return out;
}

}  // namespace

void NodeCheck::check_node(const protocol::to_agent::CheckNode& question) {
  const health::Level level = question.full ? health::Level::full : health::Level::quick;
  sink_ = PeerSink::open(loop_, question.token).value_or(nullptr);
  values_ = Json::object(), told_ = false, open_ = 0;
  measuring_.clear();
  for (const health::Check& check : health::checks())
    if (check.measure != nullptr) measure(check, {level, question.directory, question.names, environment_});
  const Seconds limit = health::limit_of(level);
  loop_.after(limit, [this, limit] { tell(limit); });
}

void NodeCheck::measure(const health::Check& check, const health::Question& question) {
  ++open_;
  values_[std::string(check.name)] = nullptr;  // in their order
  measuring_.push_back(std::make_unique<Aside<Json>>(
      loop_, [measure = check.measure, question] { return measure(question); },
      [this, name = std::string(check.name)](Json values) { answered(name, std::move(values)); }));
}

void NodeCheck::answered(const std::string& check, Json values) {
  values_[check] = std::move(values);
  if (--open_ == 0) tell(Seconds(0));
}

void NodeCheck::tell(Seconds limit) {
  if (std::exchange(told_, true)) return;
  for (auto& [name, values] : values_.items())
    if (values.is_null()) values = {{"error", "no answer within " + format_duration(limit)}};
  protocol::from_agent::NodeChecked answer{.values = values_, .addresses = this_machine().addresses};
  if (sink_) answer.port = sink_->port().get();
  callbacks_.node(std::move(answer));
}

void NodeCheck::check_peers(const protocol::to_agent::CheckPeers& question) {
  reaching_ = std::make_unique<Aside<Transfers>>(
      loop_,
      [peers = peers_of(question.peers), token = question.token, send = question.send] {
        return health::transfer_to_all(peers, token, send);
      },
      [this, peers = question.peers](const Transfers& transfers) {
        callbacks_.peers(answer_of(peers, transfers));
      });
}

}  // namespace dlrun::agent
