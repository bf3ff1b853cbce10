// Stager: what an agent does about the items that its job stages: surveys the sources, looks what the node
// lacks, copies, links every item into the one folder that ranks know, and removes all at the end. It carries
// out the agent's actions, each beside the loop, and says by events what came of them. It decides nothing.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "src/agent/action.hpp"
#include "src/agent/event.hpp"
#include "src/agent/stage_in/cleanup_list.hpp"
#include "src/agent/stage_in/item_folders.hpp"
#include "src/agent/stage_in/transfer.hpp"
#include "src/base/token.hpp"
#include "src/process/aside.hpp"
#include "src/process/event_loop.hpp"
#include "src/protocol/agent_port.hpp"

namespace dlrun::agent {

class Stager {
 public:
  using Tell = std::function<void(Event)>;
  /// `own`: the token of the run, where the agent was given one.
  Stager(EventLoop& loop, std::optional<Token> own, std::shared_ptr<CleanupList> cleanup,
         Environment environment, Tell tell);

  void begin(const action::PrepareNode& prepare);
  void perform(const action::SurveyStage&);
  void perform(const action::ClaimStage& claim);
  void perform(const action::CopyStage& copy);
  void perform(const action::RemoveStage&);

  /// Whether processes may run that another thread waits for.
  bool is_copying() const { return copying_ && !copying_->answered(); }

 private:
  Result<Token> token_of(const std::string& told) const;
  Result<protocol::from_agent::StageNeeds> open_port(const std::string& token, std::vector<int> items);
  void on_call(const AgentIdentity& identity, UniqueFd connection);
  Transfer transfer_of(const protocol::to_agent::StageChain& chain) const;
  const std::string& host_of(NodeIndex node) const;
  void forget();
  void tell_moved();

  EventLoop& loop_;
  std::optional<Token> own_, token_;
  std::shared_ptr<CleanupList> cleanup_;
  const Environment environment_;
  Tell tell_;
  std::shared_ptr<const plan::NodeSlice> slice_;
  std::string node_local_;
  std::shared_ptr<StageControl> control_ = std::make_shared<StageControl>();
  std::shared_ptr<std::vector<SourceTree>> sources_ = std::make_shared<std::vector<SourceTree>>();
  std::shared_ptr<ItemFolders> folders_;
  std::shared_ptr<NextNode> next_ = std::make_shared<NextNode>();
  std::map<int, UniqueFd> callers_;    // that have called before we knew which is the next
  std::optional<NodeIndex> expected_;  // the next, until it has called
  std::unique_ptr<AgentPort> port_;
  std::unique_ptr<Aside<Result<Json>>> surveying_;
  std::unique_ptr<Aside<Result<std::vector<int>>>> claiming_;
  std::unique_ptr<Aside<Result<int>>> copying_;
  std::unique_ptr<Aside<std::vector<std::string>>> removing_;
};

}  // namespace dlrun::agent
