// NumberSamples: the samples of one part of a data set as numbers in arrays, file behind file. A sample is
// read where it lies when it is asked for, and becomes what a model reads: channels first, scaled. It must
// have numbers alone: what is not finite is an Error with its place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/data/numbers/number_array.hpp"
#include "runtime/data/numbers/sample_axes.hpp"

namespace dlrun::runtime {

/// What becomes of a number x of a channel: (f(x * scale) - mean) / std.
struct NumberScaling {
  enum class Transform { none, log1p };  // f
  double scale = 1;
  Transform transform = Transform::none;
  std::vector<double> mean = {}, std_dev = {};  // per channel, or one for all; empty: 0 and 1
};

class NumberSamples {
 public:
  /// All arrays have the same shape of a row.
  NumberSamples(NumberArrays arrays, SampleAxes axes);

  std::uint64_t count() const { return count_; }
  /// A sample into `out`, which has its numbers. An Error names the file and the offset.
  Result<void> read(std::uint64_t sample, const NumberScaling& scaling, std::span<float> out) const;
  /// A number that differs where the samples do, of their names' lengths, shapes and a few rows.
  std::uint64_t fingerprint() const;

 private:
  struct Row {
    const NumberArray* array;
    std::uint64_t row;
  };
  Row row_of(std::uint64_t sample) const;
  Result<void> check(const Row& row, const NumberScaling& scaling, std::span<const float> numbers) const;

  NumberArrays arrays_;
  std::vector<std::uint64_t> first_;  // sample of each array
  SampleAxes axes_;
  std::uint64_t count_ = 0;
  std::size_t channels_ = 1;
};

}  // namespace dlrun::runtime
