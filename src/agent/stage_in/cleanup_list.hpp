// CleanupList: the folders that an agent has made for what it stages, told to the reaper above it through a
// pipe. The agent removes them itself at its end; what it could not, since it was killed, the reaper does.
#pragma once

#include <filesystem>
#include <set>

#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::agent {

class CleanupList {
 public:
  explicit CleanupList(UniqueFd write) : write_(std::move(write)) {}
  /// Before the folder is made. An Error where the pipe takes no more; further attempts, whose folders have
  /// the same names, take no room in it.
  Result<void> add(const std::filesystem::path& folder);

 private:
  UniqueFd write_;
  std::set<std::filesystem::path> listed_;
};

/// Removes every folder of the list that nobody holds. The writer has ended.
void remove_listed(int read_end);

}  // namespace dlrun::agent
