// AgentSet: the agents of a run as the head speaks to them: a stream each, and their processes where these
// are ours. It decides nothing: what a message means, and who is at fault, is the head's.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "src/plan/plan.hpp"
#include "src/protocol/message_stream.hpp"

namespace dlrun::job {

struct AgentConnection {
  NodeIndex node;
  std::string host;
  std::unique_ptr<MessageStream> stream = {};
  int connection = -1;  // the stream's descriptor
  std::optional<pid_t> pid = {};
  bool ready = false, done = false, gone = false;
  bool clean = false;  // no process of its ranks is left; its files may not be written yet

  bool works() const { return stream && !gone && !done; }
};

class AgentSet {
 public:
  explicit AgentSet(const plan::Plan& plan) {
    for (const plan::NodePlan& node : plan.nodes) members_.push_back({node.index, node.host.get()});
  }

  auto begin() { return members_.begin(); }
  auto end() { return members_.end(); }
  std::size_t size() const { return members_.size(); }
  AgentConnection& operator[](NodeIndex node) { return members_[static_cast<std::size_t>(node.get())]; }

  // Those that are there still; those of them whose ranks may still run.
  void tell_all(const Message& message);
  void tell_working(const Message& message);
  // The end of its stream sends an agent home.
  void close_streams();
  // Takes note of processes of ours that ended. Their streams end by themselves, after what is still in them.
  void reap_members();
  std::vector<pid_t> pids() const;
  enum class Leaving { the_done, all };
  std::vector<pid_t> leaving(Leaving who) const;  // they may take a moment to end by themselves

 private:
  std::deque<AgentConnection> members_;  // addresses stay
};

}  // namespace dlrun::job
