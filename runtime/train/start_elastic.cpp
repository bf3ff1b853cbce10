// See start_elastic.hpp.
#include "runtime/train/start_elastic.hpp"

namespace dlrun::runtime {

Result<std::optional<ElasticWorld::Joined>> start_elastic(ElasticWorld& world, const ElasticStart& calls) {
  for (;;) {
    auto started = calls.start();
    const bool knows_all = started.has_value();
    if (started) started = calls.barrier();
    if (started) return std::optional<ElasticWorld::Joined>();
    if (started.error().kind != ErrorKind::lost) return tl::unexpected(std::move(started).error());
    const ElasticWorld::Joined joined = TRY(world.regroup(0, ElasticWorld::Cause::lost));
    if (!joined.member) return fail(ErrorKind::lost, "the run goes on without this rank");
    calls.regrouped();
    if (!joined.behind) continue;
    if (knows_all) return std::optional(joined);
    return fail(ErrorKind::internal, "other ranks train, and have not told this one what");
  }
}

}  // namespace dlrun::runtime
