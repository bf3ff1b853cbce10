// What a model is to answer, in arrays beside those of the samples: a class of each, or numbers of each
// (targets). They are read whole before the training, and every one is checked.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/data/numbers/number_array.hpp"

namespace dlrun::runtime {

/// Of each sample a class in [0, classes); unset: any below 65536.
Result<std::vector<std::uint16_t>> read_class_labels(const NumberArrays& arrays,
                                                     std::optional<std::int64_t> classes);

/// The numbers of a sample, whose arrays have the same shape of a row.
std::int64_t targets_per_sample(const NumberArrays& arrays);
/// All targets, sample behind sample.
Result<std::vector<float>> read_targets(const NumberArrays& arrays);
/// An Error at the first target that is neither 0 nor 1.
Result<void> check_label_targets(const NumberArrays& arrays);

}  // namespace dlrun::runtime
