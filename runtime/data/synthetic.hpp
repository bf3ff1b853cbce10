// Synthetic data: images, or sequences of tokens, that are a pure function of (seed, sample), for benchmarks
// and for trying a job without a data set. Each class has a faint pattern, and a token often follows from the
// one before it, so that a model can learn and its loss falls.
#pragma once

#include "runtime/data/dataset.hpp"

namespace dlrun::runtime {

/// Images, or sequences by shape.kind: `samples` for training and an eighth of that (at least one) for
/// testing.
Result<DataParts> make_synthetic(const InputShape& shape, std::uint64_t samples, std::uint64_t seed);

}  // namespace dlrun::runtime
