// ElasticWorld: a world whose ranks may be lost: the others leave it, come together in a new one, numbered
// anew, and go on. The launcher decides who is left; see src/run/regrouping.hpp.
#pragma once

#include <cstdint>

#include "src/base/result.hpp"

namespace dlrun::runtime {

class ElasticWorld {
 public:
  virtual ~ElasticWorld() = default;

  struct Joined {
    int source = 0;       // a rank of the new world that has done most
    bool behind = false;  // whether others have done less
  };
  /// After a call that failed with ErrorKind::lost: waits for a new world and joins it. `done`: how many
  /// operations of the training this rank has completed. The communicator's rank and size are others then.
  /// An Error where the launcher is gone.
  virtual Result<Joined> regroup(std::uint64_t done) = 0;
};

}  // namespace dlrun::runtime
