// Arrays of NumPy: .npy files, and members of .npz files. What is stored is read where it lies, row by row;
// a packed member is unpacked into memory once.
#pragma once

#include <filesystem>
#include <memory>

#include "runtime/data/encoded/file_set.hpp"
#include "runtime/data/numbers/number_array.hpp"

namespace dlrun::runtime {

/// Where the rows of an array are.
enum class Rows {
  along_first_axis,
  whole_file  // the array is one row
};

/// A .npy file, number `file` of the set, whose length must be what its header says.
Result<std::shared_ptr<const NumberArray>> open_npy(std::shared_ptr<const FileSet> files, std::size_t file,
                                                    Rows rows);

/// The array called `member` in a .npz file. A packed one of more than `memory` bytes is refused.
Result<std::shared_ptr<const NumberArray>> open_npz(const std::filesystem::path& path,
                                                    const std::string& member, std::uint64_t memory);

}  // namespace dlrun::runtime
