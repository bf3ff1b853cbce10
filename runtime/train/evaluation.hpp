// Evaluation: the test set once, shared by all ranks. Batch statistics are rank 0's on every rank (they are
// what a checkpoint holds), so that the figure does not depend on whether the run was interrupted.
#pragma once

#include "runtime/comm/communicator.hpp"
#include "runtime/data/batch_filler.hpp"
#include "runtime/train/totals.hpp"

namespace dlrun::runtime {

Result<Totals> evaluate(Engine& engine, Communicator& comm, const Dataset& data, const BatchFiller& filler);

}  // namespace dlrun::runtime
