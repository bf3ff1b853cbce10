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

InputScaling input_scaling_of(const Conversion& conversion, std::size_t channels) {
  InputScaling out;
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = conversion.mean.empty() ? 0 : conversion.mean[c];
    const double std_dev = conversion.std_dev.empty() ? 1 : conversion.std_dev[c];
    out.scale.push_back(static_cast<float>(1 / (255 * std_dev)));
    out.shift.push_back(static_cast<float>(-mean / std_dev));
  }
  return out;
}

// Where an image's pixels come from: so far down and to the right, and mirrored or not.
struct BatchFiller::Variant {
  std::int64_t down, right;
  bool flip;
};

BatchFiller::BatchFiller(const Dataset& data, const Conversion& conversion, const Augmentation& augmentation)
    : data_(data),
      augmentation_(augmentation),
      meaning_(input_scaling_of(conversion, static_cast<std::size_t>(data.shape.channels))) {}

void BatchFiller::convert(std::uint64_t sample, float* out) const {
  const auto plane = static_cast<std::size_t>(data_.shape.height * data_.shape.width);
  const std::uint8_t* in = data_.pixels(sample).data();
  for (std::size_t c = 0; c < meaning_.scale.size(); ++c)
    scale_row(in + c * plane, plane, meaning_.scale[c], meaning_.shift[c], out + c * plane);
}

BatchFiller::Variant BatchFiller::variant(std::uint64_t sample, AugmentationKey key) const {
  const std::int64_t pad = augmentation_.crop_padding;
  const std::uint64_t random = mix(key.seed, 0x61756720u, key.epoch, sample);
  const auto shifts = static_cast<std::uint64_t>(2 * pad + 1);
  return {static_cast<std::int64_t>(below(random, shifts)) - pad,
          static_cast<std::int64_t>(below(mix(random), shifts)) - pad,
          augmentation_.flip && (mix(random, 1) & 1) != 0};
}

void BatchFiller::convert_augmented(std::uint64_t sample, AugmentationKey key, float* out) const {
  std::vector<std::uint8_t> bytes(data_.pixels_per_sample());
  copy_augmented(sample, key, bytes.data());
  const std::size_t plane = bytes.size() / meaning_.scale.size();
  for (std::size_t c = 0; c < meaning_.scale.size(); ++c)
    scale_row(bytes.data() + c * plane, plane, meaning_.scale[c], meaning_.shift[c], out + c * plane);
}

// A row at a time: what comes from outside is 0.
void BatchFiller::copy_augmented(std::uint64_t sample, AugmentationKey key, std::uint8_t* out) const {
  const std::int64_t height = data_.shape.height, width = data_.shape.width;
  const Variant of = variant(sample, key);
  const std::int64_t begin = std::max<std::int64_t>(0, of.right);  // columns of the image that are seen
  const std::int64_t seen = std::max<std::int64_t>(0, std::min(width, width + of.right) - begin);
  const std::int64_t at = begin - of.right;  // where they are put, from the left or mirrored from the right
  const std::uint8_t* in = data_.pixels(sample).data();
  for (std::int64_t c = 0; c < data_.shape.channels; ++c, in += height * width)
    for (std::int64_t y = 0; y < height; ++y, out += width) {
      std::fill_n(out, width, std::uint8_t{0});
      const std::int64_t from_y = y + of.down;
      if (from_y < 0 || from_y >= height) continue;
      const std::uint8_t* const row = in + from_y * width + begin;
      if (of.flip)
        std::reverse_copy(row, row + seen, out + width - at - seen);
      else
        std::copy_n(row, seen, out + at);
    }
}

void BatchFiller::fill_row(std::uint64_t sample, const std::optional<AugmentationKey>& key, const Rows& rows,
                           std::size_t row) const {
  const std::size_t start = row * data_.pixels_per_sample();
  const bool augmented = key && augmentation_.any();
  if (!rows.bytes.empty()) {
    std::uint8_t* const out = rows.bytes.data() + start;
    if (augmented) return copy_augmented(sample, *key, out);
    std::copy_n(data_.pixels(sample).data(), data_.pixels_per_sample(), out);
    return;
  }
  float* const out = rows.numbers.data() + start;
  augmented ? convert_augmented(sample, *key, out) : convert(sample, out);
}

void BatchFiller::fill(std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& sample,
                       std::optional<AugmentationKey> key, const Rows& rows) const {
  for (std::size_t i = 0; i < rows.labels.size(); ++i) {
    const std::uint64_t which = count > 0 ? sample(i < count ? i : i % count) : i % data_.count;
    if (i < count && !data_.check_sample(which)) damaged_ = static_cast<std::int64_t>(which);
    fill_row(which, key, rows, i);
    rows.labels[i] = i < count ? static_cast<std::int32_t>(data_.labels[which]) : -1;
  }
}

Result<void> BatchFiller::state() const {
  const std::int64_t damaged = damaged_;
  return damaged < 0 ? Result<void>{} : data_.check_sample(static_cast<std::uint64_t>(damaged));
}

}  // namespace dlrun::runtime
