// Data sets of HDF5 files, in whatever way they lie there: HDF5 reads and unpacks them, row by row. Its calls
// wait for each other, in the whole process.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "runtime/data/numbers/number_array.hpp"

namespace dlrun::runtime {

class Hdf5File {
 public:
  /// An Error where the library or the file cannot be opened.
  static Result<std::shared_ptr<const Hdf5File>> open(const std::filesystem::path& path);
  virtual ~Hdf5File() = default;
  /// The data set of that name. An Error where it is not there, or not of numbers.
  virtual Result<std::shared_ptr<const NumberArray>> array(const std::string& name) const = 0;
};

}  // namespace dlrun::runtime
