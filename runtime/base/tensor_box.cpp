// See tensor_box.hpp.
#include "runtime/base/tensor_box.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace dlrun::runtime {
namespace {

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;

// Where a place of the whole tensor lies among the numbers of a box.
std::size_t offset_in(const TensorBox& box, const TensorShape& place) {
  std::size_t out = 0;
  for (std::size_t axis = 0; axis < place.size(); ++axis)
    out = out * static_cast<std::size_t>(box.count[axis]) +
          static_cast<std::size_t>(place[axis] - box.first[axis]);
  return out;
}

// The next run of numbers along the last axis; false behind the last one.
bool next_run(const TensorBox& part, TensorShape& place) {
  for (std::size_t axis = place.size() - 1; axis-- > 0;) {
    if (++place[axis] < part.first[axis] + part.count[axis]) return true;
    place[axis] = part.first[axis];
  }
  return false;
}

std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t out = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (problem != std::errc() || out < 0 || out > kMaxExtent) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return out;
}

bool take(std::string_view& text, char wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::size_t elements_of(const TensorShape& shape) {
  std::size_t out = 1;
  for (const std::int64_t extent : shape) out *= static_cast<std::size_t>(extent);
  return out;
}

std::size_t TensorBox::elements() const {
  return elements_of(count);
}

TensorBox whole_box(const TensorShape& shape) {
  return {TensorShape(shape.size(), 0), shape};
}

TensorBox slice_along(const TensorShape& shape, std::size_t axis, std::int64_t first, std::int64_t count) {
  TensorBox out = whole_box(shape);
  out.first[axis] = first;
  out.count[axis] = count;
  return out;
}

bool is_within(const TensorBox& box, const TensorShape& shape) {
  if (box.first.size() != shape.size() || box.count.size() != shape.size()) return false;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (box.first[axis] < 0 || box.count[axis] < 0 || box.first[axis] > shape[axis] ||
        box.count[axis] > shape[axis] - box.first[axis])
      return false;
  return true;
}

std::optional<TensorBox> common_part(const TensorBox& left, const TensorBox& right) {
  TensorBox out = left;
  for (std::size_t axis = 0; axis < left.first.size(); ++axis) {
    const std::int64_t begin = std::max(left.first[axis], right.first[axis]);
    const std::int64_t end =
        std::min(left.first[axis] + left.count[axis], right.first[axis] + right.count[axis]);
    if (begin >= end) return std::nullopt;
    out.first[axis] = begin;
    out.count[axis] = end - begin;
  }
  return out;
}

void copy_part(const TensorBox& part, const TensorBox& source, const float* from, const TensorBox& target,
               float* to) {
  if (part.elements() == 0) return;
  const std::size_t run = part.count.empty() ? 1 : static_cast<std::size_t>(part.count.back());
  TensorShape place = part.first;
  do std::memcpy(to + offset_in(target, place), from + offset_in(source, place), run * sizeof(float));
  while (!place.empty() && next_run(part, place));
}

std::string text_of(const TensorBox& box) {
  std::string out = "[";
  for (std::size_t axis = 0; axis < box.first.size(); ++axis)
    out += (axis == 0 ? "" : ",") + std::to_string(box.first[axis]) + ":" +
           std::to_string(box.first[axis] + box.count[axis]);
  return out + "]";
}

std::optional<TensorBox> parse_box(std::string_view text) {
  TensorBox out;
  if (!take(text, '[')) return std::nullopt;
  while (!text.starts_with(']')) {
    if (!out.first.empty() && !take(text, ',')) return std::nullopt;
    const auto first = take_number(text);
    if (!first || !take(text, ':')) return std::nullopt;
    const auto end = take_number(text);
    if (!end || *end < *first) return std::nullopt;
    out.first.push_back(*first);
    out.count.push_back(*end - *first);
  }
  if (text != "]") return std::nullopt;
  return out;
}

}  // namespace dlrun::runtime
