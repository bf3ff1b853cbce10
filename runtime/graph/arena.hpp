// Memory of a plan: HugePages is one block of the system's memory; ActivationArena packs buffers into such a
// block by the span of time in which each is needed, so that two that never live together share their place.
// A first touch of a small page is slow (15 us on some virtual machines), hence huge pages where there are
// any.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include "src/base/result.hpp"

namespace dlrun::runtime {

inline constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

class HugePages {
 public:
  HugePages() = default;
  // Zeroed memory. An Error where the system has none left.
  static Result<HugePages> allocate(std::size_t bytes);
  HugePages(HugePages&& other) noexcept;
  HugePages& operator=(HugePages&& other) noexcept;
  ~HugePages();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  void* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// A place in an arena; `data` is known once the arena is laid out.
struct Buffer {
  std::size_t bytes = 0;
  std::byte* data = nullptr;
  int first = 0, last = -1;  // moments of its first and last use; none yet
  Buffer* same = nullptr;    // lives in that buffer's place
  std::size_t offset = 0;

  float* floats() const { return reinterpret_cast<float*>(data); }
};

class ActivationArena {
 public:
  Buffer* add(std::size_t bytes);
  static void use(Buffer* buffer, int moment);
  // Puts `buffer` into the place of `target`, for as long as either lives.
  static void share(Buffer* buffer, Buffer* target);
  Result<void> lay_out();
  std::size_t size() const { return memory_.size(); }

 private:
  std::deque<Buffer> buffers_;
  HugePages memory_;
};

}  // namespace dlrun::runtime
