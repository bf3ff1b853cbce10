// See tensor_part.hpp.
#include "runtime/base/tensor_part.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace dlrun::runtime {
namespace {

std::int64_t product(std::span<const std::int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace

std::vector<std::int64_t> TensorPart::shape() const {
  std::vector<std::int64_t> out = whole;
  out[axis] = 0;
  for (const IndexRange& range : ranges) out[axis] += range.count;
  return out;
}

std::vector<TensorBox> TensorPart::boxes() const {
  std::vector<TensorBox> out;
  for (const IndexRange& range : ranges) out.push_back(slice_along(whole, axis, range.first, range.count));
  return out;
}

std::vector<TensorBox> TensorPart::boxes_of(const TensorBox& of_part) const {
  const std::int64_t begin = of_part.first[axis], end = begin + of_part.count[axis];
  std::vector<TensorBox> out;
  std::int64_t at = 0;  // where the range begins in the part
  for (const IndexRange& range : ranges) {
    const std::int64_t first = std::max(begin, at), last = std::min(end, at + range.count);
    if (first < last) {
      TensorBox& box = out.emplace_back(of_part);
      box.first[axis] = range.first + first - at;
      box.count[axis] = last - first;
    }
    at += range.count;
  }
  return out;
}

void for_each_run(const TensorPart& part, const std::function<void(const TensorRun&)>& each) {
  const std::span<const std::int64_t> whole(part.whole);
  const std::int64_t outer = product(whole.first(part.axis)), inner = product(whole.subspan(part.axis + 1));
  std::size_t at = 0;
  for (std::int64_t block = 0; block < outer; ++block)
    for (const IndexRange& range : part.ranges) {
      const auto count = static_cast<std::size_t>(range.count * inner);
      each({at, static_cast<std::size_t>((block * whole[part.axis] + range.first) * inner), count});
      at += count;
    }
}

std::vector<IndexRange> divided_sections(std::span<const std::int64_t> sections, int number, int parts) {
  std::vector<IndexRange> out;
  std::int64_t begin = 0;
  for (const std::int64_t length : sections) {
    const std::int64_t each = length / parts, more = length % parts;
    out.push_back(
        {begin + number * each + std::min<std::int64_t>(number, more), each + (number < more ? 1 : 0)});
    begin += length;
  }
  return out;
}

}  // namespace dlrun::runtime
