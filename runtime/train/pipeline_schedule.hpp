// The order in which a stage of a pipeline computes the micro-batches of an update: one forward, one backward
// (PipeDream-Flush: Narayanan et al., "Memory-efficient pipeline-parallel DNN training", 2021; the default
// schedule of Megatron-LM). A stage that is k stages before the last computes k forwards first, so that no
// stage keeps the values of more micro-batches than there are stages from it to the end. A pure function: it
// sends nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/graph/stages.hpp"

namespace dlrun::runtime {

struct PipelineStep {
  enum class Pass { forward, backward };
  Pass pass = Pass::forward;
  int micro_batch = 0;
  // Where its values are kept between its forward and its backward; unset where the one follows the other.
  std::optional<std::size_t> place = {};
  friend bool operator==(const PipelineStep&, const PipelineStep&) = default;
};

/// Both passes of all micro-batches, each in ascending order.
std::vector<PipelineStep> one_forward_one_backward(const StageRank& rank, int micro_batches);

/// For how many batches a stage keeps values at once: the places of that schedule.
int places_of(const StageRank& rank, int micro_batches);

/// What a stage waits at least in an update, as a part of the time in which it computes: (P - 1) / M, where
/// all stages take as long.
double pipeline_bubble(int stages, int micro_batches);

}  // namespace dlrun::runtime
