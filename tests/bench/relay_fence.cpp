#include "tests/bench/relay_fence.hpp"

#include <algorithm>
#include <ctime>
#include <iterator>
#include <memory>
#include <utility>

#include "src/agent/relay.hpp"
#include "src/protocol/codec.hpp"

namespace dlrun::job {
namespace {

using agent::Relay;
using protocol::to_agent::Allgathered;

template <class Decode>
auto read_message(const std::string& bytes, Decode decode) {
  MessageDecoder decoder;
  decoder.add(bytes);
  return decode(std::move(*decoder.next().value())).value();
}

// The agents of one tree, from the last to the first: a node's children come behind it, so each has all
// parts.
class Tree {
 public:
  Tree(int nodes, std::size_t bytes)
      : shape_(std::make_shared<const RelayTree>(nodes)),
        blob_(bytes, 'x'),
        given_(static_cast<std::size_t>(nodes)),
        ready_(given_.size()) {}

  // How long until the root has the result.
  double go_up() {
    for (int node = shape_->nodes() - 1; node >= 0; --node) up(NodeIndex(node));
    return ready_[0];
  }
  // And until the last agent has it.
  double go_down() const { return down(NodeIndex(0), encoded_result()); }

  int levels() const { return levels_; }
  double busiest() const { return busiest_; }

 private:
  void up(NodeIndex node) {
    Relay relay(shape_, node);
    (void)relay.parent_joined();
    double begin = 0;
    for (const NodeIndex child : relay.children()) begin = std::max(begin, ready_[at(child)]);
    const double began = cpu_seconds();
    std::vector<agent::Action> actions = relay.gave("pmix/*/0", blob_);
    for (const NodeIndex child : relay.children()) {
      auto part = std::get<Relay::Part>(
          read_message(std::exchange(given_[at(child)], {}), protocol::decode_from_agent));
      auto next = relay.child_gave(child, std::move(part), Relay::Route::direct).value();
      std::move(next.begin(), next.end(), std::back_inserter(actions));
    }
    for (agent::Action& action : actions) {
      if (auto* send = std::get_if<agent::action::SendToParent>(&action))
        given_[at(node)] = encode(protocol::encode(protocol::FromAgent(std::move(send->part))));
      if (auto* tell = std::get_if<agent::action::TellAllgathered>(&action)) result_ = tell->all;
    }
    const double took = cpu_seconds() - began;
    busiest_ = std::max(busiest_, took);
    ready_[at(node)] = begin + took;
  }

  std::string encoded_result() const { return encode(protocol::encode(protocol::ToAgent(*result_))); }

  // All agents of a level do the same: one of them is enough.
  double down(NodeIndex node, std::string bytes) const {
    const auto& children = shape_->children(node);
    const double began = cpu_seconds();
    if (children.empty()) return read_result(bytes), cpu_seconds() - began;
    const std::string next = encode(protocol::encode(protocol::ToAgent(read_result(bytes))));
    const double took = cpu_seconds() - began;
    bytes.clear();
    ++levels_;
    return took + down(children.front(), next);
  }
  static Allgathered read_result(const std::string& bytes) {
    return std::get<Allgathered>(read_message(bytes, protocol::decode_to_agent));
  }

  static std::size_t at(NodeIndex node) { return static_cast<std::size_t>(node.get()); }

  std::shared_ptr<const RelayTree> shape_;
  std::string blob_;
  std::vector<std::string> given_;  // by node: what it has sent to the one above
  std::vector<double> ready_;       // when
  agent::action::AllgatheredPtr result_;
  double busiest_ = 0;
  mutable int levels_ = 0;
};

}  // namespace

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

Json relay_fence(int nodes, std::size_t bytes_per_node) {
  Tree tree(nodes, bytes_per_node);
  const double up = tree.go_up(), down = tree.go_down();
  return {{"levels", tree.levels()},
          {"fan_out", RelayTree::kFanOut},
          {"up_s", up},
          {"down_s", down},
          {"busiest_up_s", tree.busiest()},
          {"result_bytes", static_cast<double>(bytes_per_node) * nodes}};
}

}  // namespace dlrun::job
