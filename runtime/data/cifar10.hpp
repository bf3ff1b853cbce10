// CIFAR-10's binary format: records of a label byte and 3 x 32 x 32 pixels, in data_batch_1.bin to
// data_batch_5.bin and test_batch.bin, all of which must be there. A file may hold any whole number of
// records.
#pragma once

#include "runtime/data/dataset.hpp"

namespace dlrun::runtime {

InputShape cifar10_shape();
Result<InputShape> probe_cifar10(const std::filesystem::path& folder);
Result<DataParts> load_cifar10(const std::filesystem::path& folder);

}  // namespace dlrun::runtime
