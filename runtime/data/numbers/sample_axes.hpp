// SampleAxes: what the axes of a sample's array mean, by letters: channels C, depth D, height H and width W.
// Models read channels first; where they are last, they are moved as a sample is read.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/input_shape.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

class SampleAxes {
 public:
  /// Of letters such as "HWC"; an Error where they are no order that can be read.
  static Result<SampleAxes> of(const std::string& letters);
  /// What so many axes mean where nobody says: W, HW, CHW, CDHW. An Error where they are too many.
  static Result<SampleAxes> usual(std::size_t axes);

  const std::string& letters() const { return letters_; }
  /// Height and width of a row of numbers are 1 and its length. Classes are left alone.
  InputShape shape_of(std::span<const std::uint64_t> extents) const;
  bool channels_last() const { return letters_.size() > 1 && letters_.back() == 'C'; }

 private:
  explicit SampleAxes(std::string letters) : letters_(std::move(letters)) {}
  std::string letters_;
};

}  // namespace dlrun::runtime
