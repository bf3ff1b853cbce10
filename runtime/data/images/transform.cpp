// See transform.hpp.
#include "runtime/data/images/transform.hpp"

#include <algorithm>

#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::uint64_t kCropKey = 0x63726f70u, kJitterKey = 0x6a697474u;

std::uint64_t draw_key(const SampleKey& key, std::uint64_t purpose) {
  return mix(key.of.seed, purpose, key.of.epoch, key.sample);
}

Result<DecodedBox> decode(const EncodedImage& from, const std::string& name, const ChooseBox& choose) {
  if (!from.raw) return decode_box(from.bytes, name, choose);
  DecodedBox out{.image = TRY(image_of_planes(from, name)), .box = {}};
  out.box = choose(out.image.width, out.image.height);
  return out;
}

Result<Image> evaluated(const EncodedImage& from, const InputShape& shape, const Evaluation& evaluation,
                        const std::string& name) {
  const ChooseBox all = [](std::int64_t width, std::int64_t height) { return Box{0, 0, width, height}; };
  const Image image = TRY(decode(from, name, all)).image;
  return evaluation.centre_crop ? centre_crop(image, shape.width, shape.height, *evaluation.centre_crop)
                                : fitted(image, shape.width, shape.height);
}

// Shifted by the variant; what comes from outside is 0.
Image shifted(const Image& image, const Variant& by) {
  if (by.down == 0 && by.right == 0) return image;
  Image out{.width = image.width, .height = image.height, .pixels = {}};
  out.pixels.resize(image.pixels.size());
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < image.width; ++x) {
      const std::int64_t from_y = y + by.down, from_x = x + by.right;
      if (from_y < 0 || from_y >= image.height || from_x < 0 || from_x >= image.width) continue;
      std::copy_n(image.pixels.begin() + (from_y * image.width + from_x) * 3, 3,
                  out.pixels.begin() + (y * image.width + x) * 3);
    }
  return out;
}

}  // namespace

Result<Image> image_of_planes(const EncodedImage& from, const std::string& name) {
  const RawShape& shape = *from.raw;
  const auto plane = static_cast<std::size_t>(shape.height * shape.width);
  if (shape.channels != 1 && shape.channels != 3)
    return bad_input(name, fmt::format("has {} channels; images have 1 or 3", shape.channels));
  Image out{.width = shape.width, .height = shape.height, .pixels = {}};
  out.pixels.resize(3 * plane);
  for (std::size_t i = 0; i < plane; ++i)
    for (std::size_t colour = 0; colour < 3; ++colour)
      out.pixels[3 * i + colour] = from.bytes[shape.channels == 1 ? i : colour * plane + i];
  return out;
}

void put_planes(const Image& image, std::int64_t channels, Side side, std::uint8_t* out) {
  const auto width = static_cast<std::size_t>(image.width), height = static_cast<std::size_t>(image.height);
  for (std::size_t channel = 0; channel < static_cast<std::size_t>(channels); ++channel)
    for (std::size_t y = 0; y < height; ++y, out += width) {
      const std::uint8_t* const row = image.pixels.data() + y * width * 3 + channel;
      if (channels == 1)
        for (std::size_t x = 0; x < width; ++x) out[x] = grey_of(row + 3 * x);
      else
        for (std::size_t x = 0; x < width; ++x) out[x] = row[3 * x];
      if (side == Side::mirrored) std::reverse(out, out + width);
    }
}

std::optional<Cut> cut_of(const Box& whole, const InputShape& shape, const Augmentation& augmentation,
                          const Evaluation& evaluation, const std::optional<SampleKey>& key) {
  const bool changes = key && augmentation.any();
  if (changes && (augmentation.crop_padding > 0 || augmentation.jitter.any())) return std::nullopt;
  Cut out;
  if (changes && augmentation.resized_crop)
    out.scaling = {
        random_crop(*augmentation.resized_crop, whole.width, whole.height, draw_key(*key, kCropKey)),
        {shape.width, 0, shape.width},
        {shape.height, 0, shape.height}};
  else if (evaluation.centre_crop)
    out.scaling = centre_scaling(whole, shape.width, shape.height, *evaluation.centre_crop);
  else
    return std::nullopt;
  if (changes && variant_of(augmentation, *key).flip) out.side = Side::mirrored;
  return out;
}

Result<void> transform(const EncodedImage& from, const InputShape& shape, const Augmentation& augmentation,
                       const Evaluation& evaluation, const std::optional<SampleKey>& key,
                       const std::string& name, std::span<std::uint8_t> out) {
  if (!key || !augmentation.any()) {
    put_planes(TRY(evaluated(from, shape, evaluation, name)), shape.channels, Side::as_it_is, out.data());
    return {};
  }
  Image image;
  if (augmentation.resized_crop) {
    const DecodedBox part = TRY(decode(from, name, [&](std::int64_t width, std::int64_t height) {
      return random_crop(*augmentation.resized_crop, width, height, draw_key(*key, kCropKey));
    }));
    image = resized_crop(part.image, part.box, shape.width, shape.height);
  } else {
    image = TRY(evaluated(from, shape, evaluation, name));
  }
  if (augmentation.jitter.any()) jitter(augmentation.jitter, image, draw_key(*key, kJitterKey));
  const Variant variant = variant_of(augmentation, *key);
  put_planes(shifted(image, variant), shape.channels, variant.flip ? Side::mirrored : Side::as_it_is,
             out.data());
  return {};
}

}  // namespace dlrun::runtime
