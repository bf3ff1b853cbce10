// MappedFile: a file that is read by looking at it. Its pages come in when they are touched and may go again,
// so data larger than memory can be trained on; several ranks of a node share them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "src/base/result.hpp"

namespace dlrun::runtime {

struct MappedRange;

class MappedFile {
 public:
  /// Read-only, and regular. An Error with the reason; a file of 0 bytes maps to no bytes. One that becomes
  /// shorter while it is mapped ends the process with its name (mapped_faults.hpp).
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(name_, other.name_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(range_, other.range_);
    return *this;
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& name() const { return name_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(std::string name, const std::byte* data, std::size_t size);
  std::string name_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  MappedRange* range_ = nullptr;
};

}  // namespace dlrun::runtime
