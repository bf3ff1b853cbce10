// The `train.data` section: which format, where, how pixels become numbers and how they are augmented.
#pragma once

#include "runtime/train/train_spec.hpp"
#include "src/base/fields.hpp"

namespace dlrun::runtime {

Result<void> read_data_section(yaml::Fields& train, TrainSpec& out);

}  // namespace dlrun::runtime
