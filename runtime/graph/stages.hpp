// Pipeline parallelism as a pass over graphs: from a model to one of its stages, which follow one another. A
// model is cut where one value alone goes on, so that costs of stages are as equal as these places allow. The
// same for every rank of a tensor group, whose parts of a model are cut at the same places. It is a pure
// function of the model and the number of stages: it knows no ranks.
#pragma once

#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

/// The place of a rank in its pipeline.
struct StageRank {
  int stage = 0, stages = 1;
  bool alone() const { return stages == 1; }
  bool is_first() const { return stage == 0; }
  bool is_last() const { return stage + 1 == stages; }
};

/// The stage of `whole`, with its borders as operators. Its parameters begin as those of the whole model. An
/// Error where the model cannot be cut into so many stages, or has losses before its end.
Result<Graph> cut_graph(const Graph& whole, const StageRank& rank);

/// The nodes behind which such a pipeline is cut, ascending: one less than stages. For tests.
Result<std::vector<std::size_t>> places_of_cuts(const Graph& fused, int stages);

}  // namespace dlrun::runtime
