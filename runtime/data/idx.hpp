// IDX, the format of MNIST and Fashion-MNIST: a magic number, the dimensions, then bytes; plain or .gz. A
// folder holds four files (training and test images and labels). Counts, lengths and labels must agree to
// the byte.
#pragma once

#include "runtime/data/dataset.hpp"

namespace dlrun::runtime {

Result<InputShape> probe_idx(const std::filesystem::path& folder, std::int64_t classes);
/// The headers, and the labels (they are small) to the last.
Result<InputShape> check_idx(const std::filesystem::path& folder, std::int64_t classes);
Result<DataParts> load_idx(const std::filesystem::path& folder, std::int64_t classes);

}  // namespace dlrun::runtime
