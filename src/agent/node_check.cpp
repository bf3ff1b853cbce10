#include "src/agent/node_check.hpp"

#include <utility>

#include <poll.h>
#include <sys/socket.h>

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

// Both neighbours are there: this one has been called, and the one that it called has answered. Each waits
// for as long as a name may take to be resolved and a packet to be sent again.
constexpr Seconds kNeighbours{4};

std::string handshake(const UniqueFd& from_previous, const UniqueFd& to_next) {
  char answer = '+';
  pollfd polled{to_next.get(), POLLIN, 0};
  if (::send(from_previous.get(), &answer, 1, MSG_NOSIGNAL) != 1)
    return "the previous node closed the connection";
  if (::poll(&polled, 1, static_cast<int>(1000 * kNeighbours.count())) != 1 ||
      ::recv(to_next.get(), &answer, 1, MSG_DONTWAIT) != 1)
    return "the next node did not answer";
  return {};
}

health::RingRate run_ring(const protocol::to_agent::CheckRing& question, std::future<UniqueFd>& caller) {
  const auto to_next = health::connect_to_peer({question.next.addresses, question.next.port},
                                               fmt::format("{} ring {}", question.token, question.ring));
  if (!to_next) return {.problem = "it cannot connect to the next node: " + to_next.error().what};
  if (caller.wait_for(kNeighbours) != std::future_status::ready)
    return {.problem = "the previous node did not connect"};
  const UniqueFd from_previous = caller.get();
  if (std::string problem = handshake(from_previous, *to_next); !problem.empty())
    return {.problem = std::move(problem)};
  return health::ring_rate(from_previous.get(), to_next->get(),
                           {.place = question.place,
                            .size = question.size,
                            .chunk = static_cast<std::size_t>(question.chunk),
                            .time = question.time});
}

}  // namespace

void NodeCheck::check_node(const protocol::to_agent::CheckNode& question) {
  const health::Level level = question.full ? health::Level::full : health::Level::quick;
  sink_ = PeerSink::open(loop_, question.token, [this](int ring, UniqueFd fd) {
            called(ring, std::move(fd));
          }).value_or(nullptr);
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

void NodeCheck::called(int ring, UniqueFd from_previous) {
  RingLink& link = rings_[ring];
  if (!std::exchange(link.called, true)) link.promise.set_value(std::move(from_previous));
}

void NodeCheck::check_ring(const protocol::to_agent::CheckRing& question) {
  rings_.erase(rings_.begin(), rings_.lower_bound(question.ring));  // those are over
  auto caller = std::make_shared<std::future<UniqueFd>>(rings_[question.ring].promise.get_future());
  in_ring_ = std::make_unique<Aside<health::RingRate>>(
      loop_, [question, caller] { return run_ring(question, *caller); },
      [this, ring = question.ring](const health::RingRate& rate) {
        callbacks_.ring({.ring = ring, .problem = rate.problem, .bytes = rate.bytes, .took = rate.took});
      });
}

}  // namespace dlrun::agent
