// MappedFile: a file that is read by looking at it. Its pages come in when they are touched and may go again,
// so data larger than memory can be trained on; several ranks of a node share them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

#include "src/base/result.hpp"

namespace dlrun::runtime {

class MappedFile {
 public:
  // Read-only. An Error with the reason; a file of 0 bytes maps to nothing.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(const std::byte* data, std::size_t size) : data_(data), size_(size) {}
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace dlrun::runtime
