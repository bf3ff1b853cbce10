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
  std::vector<std::filesystem::path> unused;  // of neither part by their names, beside some of train
};

/// Files that `accepts`, in the folder or one level below. Where no name has the word train, all that are not
/// of the test part are for training.
Result<PartFiles> find_part_files(const std::filesystem::path& folder,
                                  bool (*accepts)(const std::filesystem::path& file));

/// A line that names the files that are not used; empty where all are.
std::vector<std::string> unused_note(const PartFiles& files);

}  // namespace dlrun::runtime
