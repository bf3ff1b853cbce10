// BatchFiller: turns samples into an engine's input rows. Pixels become value / 255, or standardised by the
// channel's mean and std; augmentation (random crop, flip) is a pure function of (seed, epoch, sample),
// so that a resumed run sees the same images.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/data/dataset.hpp"

namespace dlrun::runtime {

struct Augmentation {
  std::int64_t crop_padding = 0;  // shifted by up to so many pixels each way, zeros outside
  bool flip = false;              // left-right, every second time
  bool any() const { return crop_padding > 0 || flip; }
};

struct Conversion {
  std::vector<double> mean, std_dev;  // per channel, of pixels in 0..1; empty: 0 and 1
};

InputScaling input_scaling_of(const Conversion& conversion, std::size_t channels);

// Which variant of a sample: unset means as it is.
struct AugmentationKey {
  std::uint64_t seed = 0, epoch = 0;
};

class BatchFiller {
 public:
  BatchFiller(const Dataset& data, const Conversion& conversion, const Augmentation& augmentation);

  /// Either numbers or bytes; bytes mean what input_scaling_of() says.
  struct Rows {
    std::span<float> numbers;
    std::span<std::uint8_t> bytes;
    std::span<std::int32_t> labels;
  };
  /// Rows 0 .. count-1 become the samples `sample(0)` .. `sample(count-1)`. The rows behind them repeat
  /// samples, so that batch statistics stay sane, under the label -1: they do not count.
  void fill(std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& sample,
            std::optional<AugmentationKey> key, const Rows& rows) const;
  void fill(std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& sample,
            std::optional<AugmentationKey> key, std::span<float> input,
            std::span<std::int32_t> labels) const {
    fill(count, sample, key, Rows{input, {}, labels});
  }
  /// The Error of the first sample so far that was not what was packed.
  Result<void> state() const;

 private:
  struct Variant;
  Variant variant(std::uint64_t sample, AugmentationKey key) const;
  void convert(std::uint64_t sample, float* out) const;
  void convert_augmented(std::uint64_t sample, AugmentationKey key, float* out) const;
  void copy_augmented(std::uint64_t sample, AugmentationKey key, std::uint8_t* out) const;
  void fill_row(std::uint64_t sample, const std::optional<AugmentationKey>& key, const Rows& rows,
                std::size_t row) const;
  const Dataset& data_;
  Augmentation augmentation_;
  InputScaling meaning_;
  mutable std::atomic<std::int64_t> damaged_ =
      -1;  // a sample; by the thread that fills, which may be another
};

}  // namespace dlrun::runtime
