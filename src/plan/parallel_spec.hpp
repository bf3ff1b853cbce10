// Reads what a job file says of its process groups (`parallel`), and what an adapter says of those that its
// framework can have. Neither knows the number of ranks: parallel_checks.hpp compares all three.
#pragma once

#include <optional>
#include <vector>

#include "src/base/fields.hpp"
#include "src/plan/parallel.hpp"

namespace dlrun::plan {

/// The section `parallel` of a job file; unset where it has none.
Result<std::optional<ParallelSpec>> read_parallel(yaml::Fields& job);

/// An adapter's `parallel`: a framework that makes its groups itself.
struct AdapterParallel {
  std::vector<GroupKind> groups;                      // beside data
  std::vector<GroupOrder> orders;                     // empty: any
  SequenceParallel sequence = SequenceParallel::off;  // on: it has it where the job asks for it
};
/// Unset where the adapter has none: any groups, in any order.
Result<std::optional<AdapterParallel>> read_adapter_parallel(yaml::Fields& adapter);

}  // namespace dlrun::plan
