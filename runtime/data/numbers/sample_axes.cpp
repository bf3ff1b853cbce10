// See sample_axes.hpp.
#include "runtime/data/numbers/sample_axes.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace dlrun::runtime {
namespace {

constexpr std::array<std::string_view, 10> kOrders = {"W",   "CW",   "WC",   "HW",  "CHW",
                                                      "HWC", "CDHW", "DHWC", "DHW", "C"};

}  // namespace

Result<SampleAxes> SampleAxes::of(const std::string& letters) {
  if (std::find(kOrders.begin(), kOrders.end(), letters) != kOrders.end()) return SampleAxes(letters);
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("'{}' is not an order of a sample's axes", letters),
                    .hint = "one of C, W, CW, WC, HW, CHW, HWC, DHW, CDHW, DHWC, without the axis of the "
                            "samples, which is the first"});
}

Result<SampleAxes> SampleAxes::usual(std::size_t axes) {
  static constexpr std::array<std::string_view, 5> kUsual = {"W", "W", "HW", "CHW", "CDHW"};
  if (axes < kUsual.size()) return SampleAxes(std::string(kUsual[axes]));
  return fail(Error{
      .kind = ErrorKind::input,
      .what = fmt::format("a sample has {} axes, and at most channels, depth, height and width", axes)});
}

InputShape SampleAxes::shape_of(std::span<const std::uint64_t> extents) const {
  InputShape out{.channels = 1, .height = 1, .width = 1};
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    const auto extent = static_cast<std::int64_t>(extents[axis]);
    if (letters_[axis] == 'C') out.channels = extent;
    if (letters_[axis] == 'D') out.depth = extent;
    if (letters_[axis] == 'H') out.height = extent;
    if (letters_[axis] == 'W') out.width = extent;
  }
  return out;
}

}  // namespace dlrun::runtime
