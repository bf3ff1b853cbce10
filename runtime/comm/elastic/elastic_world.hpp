// ElasticWorld: a world whose ranks may be lost, leave and join: the others leave it, come together in a new
// one, numbered anew, and go on. The launcher decides who is in it; see src/run/regrouping.hpp.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/result.hpp"

namespace dlrun::runtime {

class ElasticWorld {
 public:
  virtual ~ElasticWorld() = default;

  struct Joined {
    bool member = true;   // else: this rank is to leave the run, and has no world any more
    int source = 0;       // a rank of the new world that has done most
    bool behind = false;  // whether others have done less
  };
  enum class Cause {
    lost,     // after a call that failed with ErrorKind::lost
    at_step,  // as is_asked() has told, on all ranks behind the same operation
    joining,  // this rank was in no world before
  };
  /// Waits for a new world and joins it. `done`: how many operations of the training this rank has completed.
  /// The communicator's rank and size are others then. An Error where the launcher is gone.
  virtual Result<Joined> regroup(std::uint64_t done, Cause cause) = 0;
  /// Whether the launcher wants another world than this one, which is whole.
  virtual bool is_asked() const = 0;
  /// Whether the launcher has called for another world, as a rank of this one is lost: who waits for it, on a
  /// device as well, is to give up.
  virtual bool is_lost() const = 0;
  /// Which world this one is; counts up.
  virtual int generation() const = 0;
  /// Whether this rank has a world: one that joins a run has none before it regroups.
  virtual bool has_world() const = 0;
  /// What this rank trains, as a checksum: who trains something else cannot join.
  virtual void set_job(const std::string& checksum) = 0;
  /// This rank leaves the run, and nothing that another rank may need is open.
  virtual Result<void> part(std::uint64_t done) = 0;
};

}  // namespace dlrun::runtime
