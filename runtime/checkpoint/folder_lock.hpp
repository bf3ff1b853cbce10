// FolderLock: one run at a time uses a checkpoint folder. The lock is the system's own and ends with the
// process, however it ends. A file system without locks gives none, and that is no Error.
#pragma once

#include <filesystem>
#include <functional>

#include "src/base/clock.hpp"
#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::runtime {

class FolderLock {
 public:
  // Waits up to `patience` for a run that is just ending; `waiting` is called once where there is one.
  static Result<FolderLock> take(const std::filesystem::path& folder, Seconds patience,
                                 const std::function<void()>& waiting);

 private:
  explicit FolderLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace dlrun::runtime
