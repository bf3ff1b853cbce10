// Evaluation: a set of samples once, shared by all ranks. Batch statistics are rank 0's on every rank (they
// are what a checkpoint holds), so that the figure does not depend on whether the run was interrupted.
#pragma once

#include "runtime/comm/communicator.hpp"
#include "runtime/data/batch_filler.hpp"
#include "runtime/train/totals.hpp"

namespace dlrun::runtime {

/// `count` samples; the i-th is number `sample(i)` of the filler's data.
Result<Totals> evaluate(Engine& engine, Communicator& comm, const BatchFiller& filler, std::uint64_t count,
                        const std::function<std::uint64_t(std::uint64_t)>& sample);

}  // namespace dlrun::runtime
