// FolderLock: somebody lives in this folder. The lock ends with the last process that holds it, also where
// that is killed by force, so a folder whose lock nobody holds was left behind and may be removed. Nothing is
// removed here.
#pragma once

#include <filesystem>

#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::agent {

// Held as long as the descriptor and its copies in forked children are open. A folder without a lock is one
// that is just being made: the lock appears under its name (`lock`) only once it is held.
Result<UniqueFd> hold_folder(const std::filesystem::path& folder);

// Whether it was ever held, and nobody does now.
bool is_abandoned(const std::filesystem::path& folder);

}  // namespace dlrun::agent
