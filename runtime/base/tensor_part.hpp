// TensorPart: which numbers of a whole tensor a rank of a tensor group has: some ranges along one axis, one
// behind the other. Its memory is that of a tensor of its own; runs() says where it lies in the whole one.
// Pure arithmetic: it knows no ranks and no files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/base/tensor_box.hpp"

namespace dlrun::runtime {

struct IndexRange {
  std::int64_t first = 0, count = 0;
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

struct TensorPart {
  std::vector<std::int64_t> whole;  // shape of the whole tensor
  std::size_t axis = 0;
  std::vector<IndexRange> ranges = {};  // of that axis, ascending

  /// Shape of the part alone.
  std::vector<std::int64_t> shape() const;
  /// One for each range.
  std::vector<TensorBox> boxes() const;
  /// Of a box of the part alone: where its numbers are in the whole tensor, in the order of its memory.
  std::vector<TensorBox> boxes_of(const TensorBox& of_part) const;
  friend bool operator==(const TensorPart&, const TensorPart&) = default;
};

/// Numbers that lie side by side in the part and in the whole.
struct TensorRun {
  std::size_t in_part = 0, in_whole = 0, count = 0;
};
/// Calls `each` for all runs of the part, in the order of its memory.
void for_each_run(const TensorPart& part, const std::function<void(const TensorRun&)>& each);

/// Part `number` of `parts` of an axis that consists of sections of these lengths, each of which is divided
/// by itself. Where a section has a remainder, its first parts have one more.
std::vector<IndexRange> divided_sections(std::span<const std::int64_t> sections, int number, int parts);

}  // namespace dlrun::runtime
