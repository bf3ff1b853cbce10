// The start of an elastic training (what is trained, from which checkpoint, how many shards), in which ranks
// may be lost as in any step: those that are left start once more. It ends with a barrier, before which each
// knows all that it needs. So a rank that loses another in that barrier, and finds that others have passed it
// and train, takes no part in a second start: it trains with them.
#pragma once

#include <functional>
#include <optional>

#include "runtime/comm/elastic/elastic_world.hpp"

namespace dlrun::runtime {

/// The operations that a rank has done once it has started with the others.
inline constexpr std::uint64_t kStarted = 1;

struct ElasticStart {
  std::function<Result<void>()> start, barrier;  // all ranks call each together
  std::function<void()> regrouped;               // the ranks are others: `start` is called once more
};
/// Unset: all have started together; else the world in which others train already.
Result<std::optional<ElasticWorld::Joined>> start_elastic(ElasticWorld& world, const ElasticStart& calls);

}  // namespace dlrun::runtime
