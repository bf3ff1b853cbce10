// The rule by which a dropout layer draws, so that tests can draw the same mask.
#pragma once

#include "runtime/graph/kernels/kernels.hpp"

namespace dlrun::runtime {

// `layer`: how many dropout layers the model has before this one.
kernels::DropoutRule dropout_rule(const EngineOptions& options, std::size_t layer, std::uint64_t step,
                                  float probability);

}  // namespace dlrun::runtime
