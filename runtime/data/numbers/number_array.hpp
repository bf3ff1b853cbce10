// NumberArray: numbers with a shape, in a file: a .npy file, a member of a .npz file, a data set of HDF5. Its
// rows lie along the first axis. What the rows mean is number_samples.hpp's; several threads may read.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/numbers/number_type.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

/// More numbers than any file has: products of extents below it do not overflow.
inline constexpr std::uint64_t kMaxNumbers = std::uint64_t{1} << 48;

class NumberArray {
 public:
  virtual ~NumberArray() = default;
  /// For people: "train.npy", "train.h5: images".
  const std::string& name() const { return name_; }
  NumberType type() const { return type_; }
  /// At least one axis.
  const std::vector<std::uint64_t>& shape() const { return shape_; }
  std::uint64_t rows() const { return shape_[0]; }
  std::uint64_t numbers_per_row() const {
    return std::accumulate(shape_.begin() + 1, shape_.end(), std::uint64_t{1}, std::multiplies<>());
  }

  /// Row `row` as it lies. An Error names the file and the offset where it is cut short.
  virtual Result<void> read(std::uint64_t row, std::span<float> out) const = 0;
  virtual Result<std::vector<double>> read_all() const = 0;
  /// Where a number of the whole array is, for people: "train.npy: offset 512".
  virtual std::string place(std::uint64_t number) const = 0;

 protected:
  NumberArray(std::string name, NumberType type, std::vector<std::uint64_t> shape)
      : name_(std::move(name)), type_(type), shape_(std::move(shape)) {}
  /// A sample of its own becomes the one row.
  void add_row_axis() { shape_.insert(shape_.begin(), 1); }

 private:
  std::string name_;
  NumberType type_;
  std::vector<std::uint64_t> shape_;
};

using NumberArrays = std::vector<std::shared_ptr<const NumberArray>>;

}  // namespace dlrun::runtime
