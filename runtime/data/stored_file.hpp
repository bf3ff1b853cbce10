// StoredFile: a data file as it lies on disk, plain or gzip, read whole. What it is, is decided by its first
// bytes; a name that says otherwise is refused, because then one of the two is a mistake. It knows nothing of
// what the bytes mean.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/huge_buffer.hpp"
#include "runtime/data/gzip.hpp"

namespace dlrun::runtime {

class StoredFile {
 public:
  static Result<StoredFile> open(const std::filesystem::path& path);

  const std::string& name() const { return name_; }
  bool compressed() const { return compressed_; }
  /// The size of the file on disk.
  std::uint64_t stored_bytes() const { return size_; }
  /// The maximum length of the uncompressed stream, which is its length if the file is not compressed.
  std::uint64_t longest() const;
  /// Reads the first bytes of the uncompressed stream, up to `count`.
  Result<std::vector<std::byte>> head(std::size_t count) const;
  /// The whole stream into `room`, from its first byte on; its true length, for the caller to compare.
  Result<StreamLength> read(std::span<std::byte> room) const;

 private:
  Result<void> read_range(std::span<std::byte> room) const;
  std::filesystem::path path_;
  std::string name_;
  std::uint64_t size_ = 0;
  bool compressed_ = false;
};

/// The text for a stream of another length than its header asks for: "short by 1 byte", "longer by 3 bytes".
std::string length_difference(StreamLength have, std::uint64_t expected);

}  // namespace dlrun::runtime
