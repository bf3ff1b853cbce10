// TensorBox: a part of a tensor: a range on each axis. Ranks that divide a tensor hold boxes of it, and so do
// the files of a checkpoint. Pure arithmetic; numbers are in plain layout, the last axis runs fastest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dlrun::runtime {

using TensorShape = std::vector<std::int64_t>;

struct TensorBox {
  TensorShape first, count;  // of each axis
  std::size_t elements() const;
  friend bool operator==(const TensorBox&, const TensorBox&) = default;
};

/// Numbers in a tensor of this shape.
std::size_t elements_of(const TensorShape& shape);

/// All of a tensor.
TensorBox whole_box(const TensorShape& shape);
/// A range on one axis: rows of a matrix are on axis 0, columns on axis 1.
TensorBox slice_along(const TensorShape& shape, std::size_t axis, std::int64_t first, std::int64_t count);
/// Whether it is a box of such a tensor at all. An empty one is.
bool is_within(const TensorBox& box, const TensorShape& shape);
/// What both have; unset where that is nothing.
std::optional<TensorBox> common_part(const TensorBox& left, const TensorBox& right);

/// Copies what lies in `part`, which both boxes contain: `from` has the numbers of `source`, `to` those of
/// `target`.
void copy_part(const TensorBox& part, const TensorBox& source, const float* from, const TensorBox& target,
               float* to);

/// "[0:512,0:768]": as Python writes it.
std::string text_of(const TensorBox& box);
/// Unset for anything else.
std::optional<TensorBox> parse_box(std::string_view text);

}  // namespace dlrun::runtime
