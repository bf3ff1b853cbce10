// The keys of train.data that say what becomes of images: augment and centre-crop. They are read from the
// job file here, and carried out by batch_filler.hpp and images/transform.hpp.
#pragma once

#include "runtime/data/augmentation.hpp"
#include "src/base/fields.hpp"

namespace dlrun::runtime {

/// augment: [random-resized-crop, flip], or {crop: 4, flip: true, color-jitter: {brightness: 0.4}}
Result<Augmentation> read_augmentation(yaml::Fields& data);

/// Whether that needs images in their own sizes. Says nothing of mistakes, which read_augmentation() names.
bool needs_whole_images(yaml::Fields& data);

/// centre-crop: 0.875. Where images are cropped at random, that is the default; else the largest part is
/// taken.
Result<Evaluation> read_evaluation(yaml::Fields& data, const Augmentation& augmentation);

}  // namespace dlrun::runtime
