// BadNodes: the nodes of a cluster that checks have found bad, remembered for a while in the user's state
// folder: a file per node, since several jobs may find some at once. Jobs that check their nodes leave them
// out where they have others. What cannot be read counts as forgotten; what cannot be written is an Error for
// the caller to report.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun::health {

struct BadNode {
  std::string host, reason;
  Instant until;
};

class BadNodes {
 public:
  /// `cluster`: host names mean the same nodes within one.
  BadNodes(const Environment& environment, std::string_view cluster);

  /// Those that are still remembered, by name. The files of the others are removed.
  std::vector<BadNode> all(Instant now) const;
  Result<void> remember(const BadNode& node) const;
  void forget(const std::string& host) const;
  const std::optional<std::filesystem::path>& folder() const { return folder_; }

 private:
  std::optional<std::filesystem::path> folder_;  // unset: the user has none
};

}  // namespace dlrun::health
