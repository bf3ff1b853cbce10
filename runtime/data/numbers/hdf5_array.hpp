// Data sets of HDF5 files, in whatever way they lie there: HDF5 reads and unpacks them, row by row. Its calls
// wait for each other, in the whole process. Of the files of a folder, those stay open that were read last.
#pragma once

#include <cstddef>
#include <filesystem>
#include <list>
#include <memory>
#include <string>

#include "runtime/data/numbers/number_array.hpp"

namespace dlrun::runtime {

class OpenHdf5File;

/// The open ones of files that are read together, the last used in front. HDF5's lock guards it.
struct Hdf5OpenFiles {
  static constexpr std::size_t kMost = 32;  // far below any limit of descriptors
  std::list<const OpenHdf5File*> files;
};

class Hdf5File {
 public:
  /// An Error where the library or the file cannot be opened.
  static Result<std::shared_ptr<const Hdf5File>> open(const std::filesystem::path& path,
                                                      std::shared_ptr<Hdf5OpenFiles> together);
  virtual ~Hdf5File() = default;
  /// The data set of that name. An Error where it is not there, or not of numbers.
  virtual Result<std::shared_ptr<const NumberArray>> array(const std::string& name) const = 0;
};

}  // namespace dlrun::runtime
