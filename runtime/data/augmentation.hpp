// What becomes of a sample on its way to a model: random changes while training, and how images that are
// evaluated are cut. Settings and keys alone; batch_filler.hpp and images/transform.hpp carry them out.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/data/images/random_crop.hpp"

namespace dlrun::runtime {

struct Augmentation {
  std::int64_t crop_padding = 0;  // shifted by up to so many pixels each way, zeros outside
  bool flip = false;              // left-right, every second time
  // Of images that stay compressed.
  std::optional<RandomResizedCrop> resized_crop = {};
  ColorJitter jitter = {};
  bool any() const { return crop_padding > 0 || flip || needs_images(); }
  bool needs_images() const { return resized_crop.has_value() || jitter.any(); }
};

/// How an image is cut where nothing is drawn.
struct Evaluation {
  std::optional<double> centre_crop;  // of the shorter side; unset: the largest centred part
};

// Which variant of a sample: unset means as it is.
struct AugmentationKey {
  std::uint64_t seed = 0, epoch = 0;
};

struct SampleKey {
  AugmentationKey of;
  std::uint64_t sample = 0;
};

/// Where a sample's pixels come from: so far down and to the right, and mirrored or not.
struct Variant {
  std::int64_t down = 0, right = 0;
  bool flip = false;
};
Variant variant_of(const Augmentation& augmentation, const SampleKey& key);

}  // namespace dlrun::runtime
