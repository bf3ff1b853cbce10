// transfer(): one node's part in copying what is staged. The first node reads the files; every other node
// takes the stream from the node before it. Each passes it on to the node behind it and writes what it lacks
// itself, at the same time, so that any number of nodes takes about the time of one. It blocks: it runs
// beside the agent's loop, with a thread for each direction.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "src/agent/stage_in/source_tree.hpp"
#include "src/agent/stage_in/stage_control.hpp"
#include "src/base/environment.hpp"
#include "src/base/token.hpp"
#include "src/base/types.hpp"
#include "src/base/unique_fd.hpp"
#include "src/protocol/handshake.hpp"

namespace dlrun::agent {

/// The connection of the node behind, which calls when it wants to.
class NextNode {
 public:
  void called(UniqueFd connection);
  /// Waits for it; empty where the transfer was stopped.
  UniqueFd await(const StageControl& control);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  UniqueFd connection_;
};

struct PreviousNode {
  std::string host;
  std::vector<std::string> addresses;
  Port port{0};
  Token token;
  AgentIdentity own;
};

struct Transfer {
  std::vector<plan::StageIn> items;              // of the plan
  std::vector<int> sent;                         // of these, in order
  std::map<int, std::filesystem::path> folders;  // where this node writes
  std::vector<SourceTree> sources = {};          // by item, where this node reads
  std::optional<PreviousNode> previous = {};     // unset: it does
  std::string next_host = {};                    // empty: there is no node behind
  std::shared_ptr<NextNode> next = {};
  Environment environment = {};  // for tar
};

/// Until this node has all, and the node behind it has been sent all. An Error of the kind `lost` is about a
/// connection, whose other end knows better why it ended.
Result<void> run_transfer(const Transfer& transfer, StageControl& control);

}  // namespace dlrun::agent
