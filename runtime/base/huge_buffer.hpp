// HugeBuffer: page-aligned memory in huge pages where the system gives them, because the first touch of many
// small pages is what large buffers cost most (15 us each on some virtual machines). It starts as zeros,
// cannot grow, and only takes up memory where it is touched.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "src/base/result.hpp"

namespace dlrun::runtime {

class HugeBuffer {
 public:
  HugeBuffer() = default;
  /// None of it for 0. An Error (with the size) where the system has no room left or a limit forbids it.
  static Result<HugeBuffer> make(std::size_t size);

  HugeBuffer(HugeBuffer&& other) noexcept { swap(other); }
  HugeBuffer& operator=(HugeBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  HugeBuffer(const HugeBuffer&) = delete;
  HugeBuffer& operator=(const HugeBuffer&) = delete;
  ~HugeBuffer();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<std::byte> bytes() const { return {data_, size_}; }
  std::span<std::byte> first(std::size_t count) const { return bytes().first(count); }

 private:
  void swap(HugeBuffer& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  void* base_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace dlrun::runtime
