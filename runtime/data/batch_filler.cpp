// See batch_filler.hpp.
#include "runtime/data/batch_filler.hpp"

#include <algorithm>

#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime {
namespace {

void scale_row(const std::uint8_t* in, std::size_t count, float scale, float shift, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]) * scale + shift;
}

}  // namespace

BatchFiller::BatchFiller(const Dataset& data, const Conversion& conversion, const Augmentation& augmentation)
    : data_(data), augmentation_(augmentation) {
  for (std::size_t c = 0; c < static_cast<std::size_t>(data.shape.channels); ++c) {
    const double mean = conversion.mean.empty() ? 0 : conversion.mean[c];
    const double deviation = conversion.deviation.empty() ? 1 : conversion.deviation[c];
    scale_.push_back(static_cast<float>(1 / (255 * deviation)));
    shift_.push_back(static_cast<float>(-mean / deviation));
  }
}

void BatchFiller::convert(std::uint64_t sample, float* out) const {
  const auto plane = static_cast<std::size_t>(data_.shape.height * data_.shape.width);
  const std::uint8_t* in = data_.pixels(sample).data();
  for (std::size_t c = 0; c < scale_.size(); ++c)
    scale_row(in + c * plane, plane, scale_[c], shift_[c], out + c * plane);
}

void BatchFiller::convert_augmented(std::uint64_t sample, AugmentationKey key, float* out) const {
  const std::int64_t height = data_.shape.height, width = data_.shape.width, pad = augmentation_.crop_padding;
  const std::uint64_t random = mix(key.seed, 0x61756720u, key.epoch, sample);
  const auto shifts = static_cast<std::uint64_t>(2 * pad + 1);
  const std::int64_t down = static_cast<std::int64_t>(below(random, shifts)) - pad;
  const std::int64_t right = static_cast<std::int64_t>(below(mix(random), shifts)) - pad;
  const bool flip = augmentation_.flip && (mix(random, 1) & 1) != 0;
  const std::uint8_t* in = data_.pixels(sample).data();
  for (std::size_t c = 0; c < scale_.size(); ++c, in += height * width, out += height * width)
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x) {
        const std::int64_t from_y = y + down, from_x = (flip ? width - 1 - x : x) + right;
        const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
        const float pixel = inside ? static_cast<float>(in[from_y * width + from_x]) : 0.0F;
        out[y * width + x] = pixel * scale_[c] + shift_[c];
      }
}

void BatchFiller::fill(std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& sample,
                       std::optional<AugmentationKey> key, std::span<float> input,
                       std::span<std::int32_t> labels) const {
  const std::size_t row = data_.pixels_per_sample();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::uint64_t which = count > 0 ? sample(i < count ? i : i % count) : i % data_.count;
    if (key && augmentation_.any())
      convert_augmented(which, *key, input.data() + i * row);
    else
      convert(which, input.data() + i * row);
    labels[i] = i < count ? static_cast<std::int32_t>(data_.labels[which]) : -1;
  }
}

}  // namespace dlrun::runtime
