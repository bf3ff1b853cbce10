// Image data sets: from files to a Dataset of equal images, or from a folder that `dlrun-train --prepare`
// packed. A damaged image is an Error that names it, all of them together; where the job says `damaged:
// drop`, it is left out, by every rank alike.
#pragma once

#include "runtime/data/data_format.hpp"
#include "runtime/data/images/image_set.hpp"

namespace dlrun::runtime {

Result<InputShape> probe_images(const ImageSpec& spec);
Result<DataParts> load_images(const ImageSpec& spec);
/// The two as a DataSource.
std::shared_ptr<const DataSource> make_image_source(ImageSpec spec);

/// The images as rows of channel, row, column, decoded side by side by `threads`.
Result<Dataset> decode_all(const std::vector<ImageFile>& files, const InputShape& shape, Damaged damaged,
                           unsigned threads);

/// The images as they are, to be decoded when they are needed.
Result<Dataset> keep_compressed(const std::vector<ImageFile>& files, const InputShape& shape,
                                Damaged damaged);

}  // namespace dlrun::runtime
