// CopyFolder: the folder of a node in which the copy of one item lies, and who may touch it. Whoever fills it
// holds its lock alone; whoever uses it holds the lock with others; the last one who lets go removes it,
// unless it is kept for later runs. So agents of one run that share a machine share one copy, two runs do not
// tear each other's, and what was left by a run that was killed is known by its lock, which nobody holds.
// Removing never follows a link, and never touches a folder of another user.
#pragma once

#include <filesystem>
#include <string>

#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::agent {

class CopyFolder {
 public:
  enum class State {
    ours,            // to be filled by us
    complete,        // there already
    of_this_run,     // another agent of this run fills it
    of_another_run,  // another run does
  };
  enum class Lifetime { run, kept };

  /// Makes the folder (0700) where it is missing. `run`: the run's id. An Error where that cannot be done, or
  /// where the place has no locks.
  static Result<CopyFolder> take(const std::filesystem::path& path, const std::string& run,
                                 Lifetime lifetime);

  State state() const { return state_; }
  Lifetime lifetime() const { return lifetime_; }
  const std::filesystem::path& path() const { return path_; }

  /// What was ours is there now: others may use it.
  Result<void> complete();
  /// Removes the folder unless others use it, or it is complete and kept. An Error says what is left.
  Result<void> release();

 private:
  CopyFolder(std::filesystem::path path, Lifetime lifetime, State state, UniqueFd lock)
      : path_(std::move(path)), lifetime_(lifetime), state_(state), lock_(std::move(lock)) {}

  std::filesystem::path path_;
  Lifetime lifetime_;
  State state_;
  UniqueFd lock_;
};

/// The name of a folder for an item of a run, or for one that is kept. `host`: several machines may share a
/// file system.
std::string run_folder_name(const std::string& host, const std::string& run, const std::string& item);
std::string kept_folder_name(const std::string& host, const std::string& source,
                             const std::string& fingerprint);

/// Removes a folder that nobody holds, unless it is a complete one that is kept. A folder that
/// is in use stays; an Error says what cannot be removed.
Result<void> remove_if_abandoned(const std::filesystem::path& path);

/// Removes what runs that were killed have left in `root` on this machine.
void sweep_abandoned(const std::filesystem::path& root, const std::string& host);
/// The same for folders of links, which are in the folder that `links`, one of them, is in.
void sweep_abandoned_links(const std::filesystem::path& links);
/// Removes older copies of what is kept under `source`, if `fingerprint` is another one.
void sweep_older(const std::filesystem::path& root, const std::string& host, const std::string& source,
                 const std::string& fingerprint);

}  // namespace dlrun::agent
