// StackFold: the stacks of many ranks as few groups: ranks that are in the same place, from the function that
// tells the most outward. "62 ranks in MPI_Allreduce; rank 7 in read_batch". Pure. It keeps one stack of each
// group, so its size is that of what differs and not that of the run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/process/stacks.hpp"

namespace dlrun::job {

class StackFold {
 public:
  /// `host`: the rank's node.
  void add(const RankStack& stack, const std::string& host);

  /// The groups, the smallest first: of a run that hangs, the few ranks hold up the many. Also what could not
  /// be read, and which files NCCL has left.
  Json groups() const;
  Json threads() const;
  Json problems() const;
  Json nccl_traces() const;
  std::size_t ranks() const { return ranks_; }
  /// How many of them told any function.
  std::size_t read() const { return read_; }
  /// "rank 7 in read_batch; 62 ranks in MPI_Allreduce".
  std::string headline() const;

 private:
  struct Group {
    std::vector<int> ranks;
    std::vector<std::string> hosts;
    RankStack first;
    std::string where;
  };
  struct Threads {
    int count = 0;
    std::vector<int> ranks;
    StackFrames frames;
  };
  std::vector<const Group*> sorted() const;

  std::map<std::string, Group> groups_;
  std::map<std::string, Threads> threads_;
  std::map<std::string, std::vector<int>> problems_;
  std::map<int, std::string> nccl_traces_;
  std::size_t ranks_ = 0, read_ = 0;
};

/// The frame that tells the most of where a rank is: a call of MPI or NCCL before all; else the innermost
/// function outside of the system's libraries. Its number; unset where there are no frames.
std::optional<std::size_t> telling_frame(const StackFrames& frames);

/// "0-6,8", and "rank 3" or "8 ranks (0-6,8)".
std::string ranks_as_ranges(std::vector<int> ranks);
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace dlrun::job
