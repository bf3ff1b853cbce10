// Memory of a plan: ActivationArena packs buffers into one block by the span of time in which each is needed,
// so that two that never live together share their place.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/huge_buffer.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

inline constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// A place in an arena; `data` is known once the arena is laid out.
struct Buffer {
  std::size_t bytes = 0;
  std::byte* data = nullptr;
  int first = 0, last = -1;  // times of its first and last use; none yet
  Buffer* same = nullptr;    // lives in that buffer's place
  std::size_t offset = 0;

  float* floats() const { return reinterpret_cast<float*>(data); }
};

class ActivationArena {
 public:
  Buffer* add(std::size_t bytes);
  static void use(Buffer* buffer, int time);
  // Puts `buffer` into the place of `target`, for as long as either lives.
  static void share(Buffer* buffer, Buffer* target);
  Result<void> lay_out();
  std::size_t size() const { return memory_.size(); }
  /// What is needed both before this time and from it on: ranges of memory, ascending, that do not touch.
  std::vector<std::span<std::byte>> needed_across(int time);

 private:
  std::deque<Buffer> buffers_;
  HugeBuffer memory_;
};

}  // namespace dlrun::runtime
