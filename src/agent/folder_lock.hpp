// FolderLock: somebody lives in this folder: the process that is named in it, and whoever it handed the lock
// on to. A folder whose process has ended was left behind and may be removed; one of a process that cannot be
// asked about, since it is another machine's, may not. Works where the file system has no locks. Nothing is
// removed here.
#pragma once

#include <filesystem>

#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::agent {

// Held as long as this process lives, and, where there are locks, as long as the descriptor and its copies in
// forked children are open. A folder without a lock is one that is just being made: the lock appears under
// its name (`lock`) only once it is held.
Result<UniqueFd> hold_folder(const std::filesystem::path& folder);

// Whether it was ever held, and nobody does now.
bool is_abandoned(const std::filesystem::path& folder);

}  // namespace dlrun::agent
