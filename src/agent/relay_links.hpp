// RelayLinks: this agent's streams to the agents above and below it in the relay tree: the port that its
// children call, the call to its parent, and the messages between. It carries out the agent's actions about
// them and says by events what comes. It decides nothing. Who calls has to prove that it has the token, and
// to be a child that has not called yet.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "src/agent/action.hpp"
#include "src/agent/event.hpp"
#include "src/process/aside.hpp"
#include "src/protocol/agent_port.hpp"
#include "src/protocol/message_stream.hpp"

namespace dlrun::agent {

class RelayLinks {
 public:
  using Tell = std::function<void(Event)>;
  /// `own`: the token of the run, where the agent was given one. `drained`: nothing is queued any more.
  RelayLinks(EventLoop& loop, std::optional<Token> own, Tell tell, std::function<void()> drained)
      : loop_(loop), own_(own), tell_(std::move(tell)), drained_(std::move(drained)) {}

  void perform(const action::OpenRelay& open);
  void perform(const action::JoinParent& join);
  void perform(const action::SendToParent& send);
  void perform(const action::SendToChildren& send);

  /// Bytes that wait to be sent.
  std::size_t queued() const;
  /// For how long the machine of the agent above has acknowledged nothing.
  Seconds parent_unacknowledged() const;

 private:
  Result<Token> token_of(const std::string& told) const;
  Result<protocol::from_agent::RelayPort> open(const action::OpenRelay& open);
  void on_child(const AgentIdentity& identity, UniqueFd connection);
  void on_child_message(NodeIndex child, Message message);
  void on_parent(Result<UniqueFd> connection);
  void on_parent_message(Message message);

  EventLoop& loop_;
  std::optional<Token> own_;
  Tell tell_;
  std::function<void()> drained_;
  std::optional<Token> token_;    // of the tree
  std::set<NodeIndex> expected_;  // children that have not called
  std::unique_ptr<AgentPort> port_;
  std::map<NodeIndex, std::unique_ptr<MessageStream>> children_;
  std::unique_ptr<Aside<Result<UniqueFd>>> joining_;
  std::unique_ptr<MessageStream> parent_;
  int parent_fd_ = -1;
};

}  // namespace dlrun::agent
