// plan_point(): the job of one point of a benchmark, planned: the job with the point's values, measured in
// the benchmark's way, and with checkpoints of its own. Nothing is written or started.
#pragma once

#include "src/run/prepare.hpp"

namespace dlrun::bench {

/// `whole` has the job with its section `bench`, and the allocation that all points share. `folder` is the
/// point's.
Result<job::Prepared> plan_point(const job::Request& whole, const plan::BenchPoint& point,
                                 const std::filesystem::path& folder);

/// The ranks that a point is told to have: with the builtin runtime those that train, without parameter
/// servers of their own.
int ranks_of_point(const plan::Plan& plan);

}  // namespace dlrun::bench
