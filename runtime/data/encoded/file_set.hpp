// FileSet: files that samples are read out of, by position. Each read is one call of the system for the bytes
// of the sample, so that a network file system sees one request, and the page cache keeps what it likes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::runtime {

class FileSet {
 public:
  FileSet() = default;
  /// Few files stay open; each of many, such as single images, is opened as it is read.
  static Result<FileSet> open(std::vector<std::filesystem::path> paths);

  std::size_t size() const { return paths_.size(); }
  const std::filesystem::path& path(std::size_t file) const { return paths_[file]; }
  /// Fills `room` from `offset` on, or is an Error that names file and offset.
  Result<void> read(std::size_t file, std::uint64_t offset, std::span<std::uint8_t> room) const;
  /// A file from beginning to end.
  Result<void> read_whole(std::size_t file, std::vector<std::uint8_t>& room) const;

 private:
  std::vector<std::filesystem::path> paths_;
  std::vector<UniqueFd> open_;  // of each path, or empty
};

/// "train-00001.tar: offset 512"
std::string place_in_file(const std::filesystem::path& path, std::uint64_t offset);

}  // namespace dlrun::runtime
