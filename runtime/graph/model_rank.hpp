// ModelRank: what a rank has of its model: a part of each layer, and one stage of them. Sizes and places
// alone: it knows no ranks of a world.
#pragma once

#include "runtime/graph/split.hpp"
#include "runtime/graph/stages.hpp"

namespace dlrun::runtime {

struct ModelRank {
  TensorRank tensor = {};
  StageRank stage = {};
  bool alone() const { return tensor.alone() && stage.alone(); }
};

/// The first rank of a model that is divided so.
inline ModelRank first_of(int tensor, int stages, SequenceParallel sequence = SequenceParallel::off) {
  return {{0, tensor, sequence}, {0, stages}};
}

}  // namespace dlrun::runtime
