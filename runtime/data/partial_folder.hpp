// PartialFolder: where a data set is written before it is complete, beside its place: NEW.partial. One
// process at a time writes it, and another one may go on with what is there; it gets its name when all is
// written.
#pragma once

#include <filesystem>

#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::runtime {

class PartialFolder {
 public:
  /// Creates the folder where it is not there. An Error where another process has it, or where `into` is
  /// there. File systems without locks have no such protection.
  static Result<PartialFolder> hold(const std::filesystem::path& into);

  const std::filesystem::path& path() const { return path_; }
  /// Removes all that is in it.
  Result<void> clear() const;
  /// Removes the folder, where what is in it is of no use to another process.
  void remove() const;
  /// Removes the temporaries of processes that were killed, and renames the folder to `into`.
  Result<void> complete() const;

 private:
  PartialFolder(std::filesystem::path path, std::filesystem::path into, UniqueFd lock)
      : path_(std::move(path)), into_(std::move(into)), lock_(std::move(lock)) {}
  std::filesystem::path path_, into_;
  UniqueFd lock_;
};

}  // namespace dlrun::runtime
