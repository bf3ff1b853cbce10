// Images of 16 bits per channel as samples of numbers: the format `images` or `list` with bit-depth: 16. They
// keep all of their bits and their size, so all have the same; what changes pixels of 8 bits is refused.
#pragma once

#include <memory>

#include "runtime/data/data_format.hpp"
#include "runtime/data/images/image_set.hpp"

namespace dlrun::runtime {

/// Refuses by name the keys of `data` that are for images of 8 bits.
Result<void> check_deep_keys(yaml::Fields& data);

/// `spec`: which files, and damaged. `channels`: what the job says, else what the first image has.
std::shared_ptr<const DataSource> make_deep_image_source(ImageSpec spec,
                                                         std::optional<std::int64_t> channels);

}  // namespace dlrun::runtime
