// CleanupList: the folders that an agent has made for what it stages, told to the reaper above it through a
// pipe. The agent removes them itself at its end; what it could not, since it was killed, the reaper does.
#pragma once

#include <filesystem>

#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::agent {

class CleanupList {
 public:
  explicit CleanupList(UniqueFd write) : write_(std::move(write)) {}
  /// Before the folder is made. An Error where the pipe takes no more.
  Result<void> add(const std::filesystem::path& folder);

 private:
  UniqueFd write_;
};

/// Removes every folder of the list that nobody holds. The writer has ended.
void remove_listed(int read_end);

}  // namespace dlrun::agent
