// Pipeline parallelism as a pass over graphs: from a model to one of its stages, which follow one another. A
// model is cut where one value alone goes on: where the job says, or so that costs of stages are as equal as
// these places allow. The same for every rank of a tensor group, whose parts of a model are cut at the same
// places. It is a pure function of the model and the number of stages: it knows no ranks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

/// The place of a rank in its pipeline.
struct StageRank {
  int stage = 0, stages = 1;
  bool alone() const { return stages == 1; }
  bool is_first() const { return stage == 0; }
  bool is_last() const { return stage + 1 == stages; }
};

/// Where a job says that the next stage begins: with that layer, or the first of those whose names begin with
/// it and a point ("h.6").
struct StageCut {
  std::string layer;
  std::string where = {};  // in the job file
};

/// The stage of `whole`, with its borders as operators. Its parameters begin as those of the whole model.
/// Without cuts, costs of the stages decide. An Error where the model cannot be cut into so many stages or at
/// these layers, or has losses before its end.
Result<Graph> cut_graph(const Graph& whole, const StageRank& rank, std::span<const StageCut> cuts = {});

/// The nodes behind which the model is cut then.
Result<std::vector<std::size_t>> places_of_cuts(const Graph& fused, std::span<const StageCut> cuts);

/// The nodes behind which such a pipeline is cut, ascending: one less than stages. For tests.
Result<std::vector<std::size_t>> places_of_cuts(const Graph& fused, int stages);

}  // namespace dlrun::runtime
