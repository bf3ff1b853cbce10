// SharedFiles: a folder of this job's own in /dev/shm for the files through which its ranks share memory.
// Killed ranks cannot remove theirs; so whoever removes the folder removes them all. It also keeps pretend
// nodes on one machine, and two jobs, apart.
#pragma once

#include <string>

#include "src/base/types.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::agent {

class SharedFiles {
 public:
  SharedFiles(const plan::Plan& plan, NodeIndex node);
  ~SharedFiles();
  SharedFiles(const SharedFiles&) = delete;
  SharedFiles& operator=(const SharedFiles&) = delete;

  // Empty where the system has no /dev/shm that we may write to: the MPI then uses its own place.
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

}  // namespace dlrun::agent
