// NodeCheck: measures on this node what the checks of src/health want to know, and tries to reach other
// nodes. Each check has a thread of its own, since a file server or a driver may never answer: what has not
// answered within the limit is told so, and the others are told all the same. It judges nothing.
#pragma once

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <vector>

#include "src/agent/peer_sink.hpp"
#include "src/base/environment.hpp"
#include "src/health/check.hpp"
#include "src/health/peer_transfer.hpp"
#include "src/health/ring_rate.hpp"
#include "src/process/aside.hpp"
#include "src/protocol/messages.hpp"

namespace dlrun::agent {

class NodeCheck {
 public:
  struct Callbacks {
    std::function<void(protocol::from_agent::NodeChecked)> node;
    std::function<void(protocol::from_agent::PeersChecked)> peers;
    std::function<void(protocol::from_agent::RingChecked)> ring;
  };
  NodeCheck(EventLoop& loop, Environment environment, Callbacks callbacks)
      : loop_(loop), environment_(std::move(environment)), callbacks_(std::move(callbacks)) {}

  /// One after the other; the answers come from the loop.
  void check_node(const protocol::to_agent::CheckNode& question);
  void check_peers(const protocol::to_agent::CheckPeers& question);
  void check_ring(const protocol::to_agent::CheckRing& question);

 private:
  using Transfers = std::vector<health::Transfer>;
  void measure(const health::Check& check, const health::Question& question);
  void answered(const std::string& check, Json values);
  void tell(Seconds limit);

  // The node before us in a ring calls before the head tells us of the ring, or after that.
  struct RingLink {
    std::promise<UniqueFd> promise = {};
    bool called = false;
  };
  void called(int ring, UniqueFd from_previous);

  EventLoop& loop_;
  const Environment environment_;
  Callbacks callbacks_;
  std::unique_ptr<PeerSink> sink_;
  std::vector<std::unique_ptr<Aside<Json>>> measuring_;
  std::size_t open_ = 0;  // checks that have not answered
  Json values_ = Json::object();
  bool told_ = false;
  std::unique_ptr<Aside<Transfers>> reaching_;
  std::map<int, RingLink> rings_;
  std::unique_ptr<Aside<health::RingRate>> in_ring_;
};

}  // namespace dlrun::agent
