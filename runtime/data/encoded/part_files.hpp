// Which files of a folder are of the training part and which of the test part, by the words of their names:
// "train-00001-of-00128", "ilsvrc12_val_lmdb/data.mdb", "train/shard-0.tar". The order is that of names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun::runtime {

struct PartFiles {
  std::vector<std::filesystem::path> train, test;
};

/// Files that `accepts`, in the folder or one level below. Where no name has the word train, all that are not
/// of the test part are for training.
Result<PartFiles> find_part_files(const std::filesystem::path& folder,
                                  bool (*accepts)(const std::filesystem::path& file));

}  // namespace dlrun::runtime
