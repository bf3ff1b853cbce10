// From the bytes of a sample to the pixels that a model takes: decoded, cropped, scaled, changed and laid out
// in planes. A pure function of the bytes, the settings and the key.
#pragma once

#include <optional>

#include "runtime/base/input_shape.hpp"
#include "runtime/data/augmentation.hpp"
#include "runtime/data/encoded/encoded_samples.hpp"
#include "runtime/data/images/resample.hpp"

namespace dlrun::runtime {

/// Raw planes of one or three channels as an image; an Error for other ones.
Result<Image> image_of_planes(const EncodedImage& from, const std::string& name);

/// Fills `out` with the planes of the image. With a key it is augmented. `name` is the sample, for errors.
Result<void> transform(const EncodedImage& from, const InputShape& shape, const Augmentation& augmentation,
                       const Evaluation& evaluation, const std::optional<SampleKey>& key,
                       const std::string& name, std::span<std::uint8_t> out);

/// From the left or mirrored.
enum class Side { as_it_is, mirrored };

/// The part of an image of this size that transform() would scale, and how it would lie.
struct Cut {
  Scaling scaling;
  Side side = Side::as_it_is;
};
/// Unset where it does more than that: shifts, changes colours, or scales without a centre crop.
std::optional<Cut> cut_of(const Box& whole, const InputShape& shape, const Augmentation& augmentation,
                          const Evaluation& evaluation, const std::optional<SampleKey>& key);

/// Interleaved colours to planes, or to one grey plane.
void put_planes(const Image& image, std::int64_t channels, Side side, std::uint8_t* out);

}  // namespace dlrun::runtime
