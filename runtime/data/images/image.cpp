// Turning and scaling; and which decoder a file is for.
#include "runtime/data/images/image.hpp"

#include <algorithm>
#include <cmath>

namespace dlrun::runtime {
namespace {

bool begins_with(std::span<const std::uint8_t> file, std::initializer_list<int> bytes) {
  return file.size() >= bytes.size() &&
         std::equal(bytes.begin(), bytes.end(), file.begin(), [](int a, std::uint8_t b) { return a == b; });
}

bool is_jpeg(std::span<const std::uint8_t> file) {
  return begins_with(file, {0xff, 0xd8});
}

// One output pixel's share of its neighbours along one axis.
struct Weights {
  std::int64_t first = 0;
  std::vector<float> shares;  // sum 1
};

// `extent` pixels from `origin` on become `count`; a triangle as wide as one output pixel, at least two input
// pixels.
std::vector<Weights> triangle(std::int64_t limit, double origin, double extent, std::int64_t count) {
  std::vector<Weights> out;
  const double scale = extent / static_cast<double>(count), reach = std::max(scale, 1.0);
  for (std::int64_t i = 0; i < count; ++i) {
    const double centre = origin + (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(centre - reach)));
    const auto last = std::min(limit - 1, static_cast<std::int64_t>(std::ceil(centre + reach)));
    Weights weights{.first = first, .shares = {}};
    double sum = 0;
    for (std::int64_t pixel = first; pixel <= last; ++pixel) {
      const double share = std::max(0.0, 1 - std::abs(static_cast<double>(pixel) + 0.5 - centre) / reach);
      weights.shares.push_back(static_cast<float>(share));
      sum += share;
    }
    for (float& share : weights.shares) share = static_cast<float>(share / sum);
    out.push_back(std::move(weights));
  }
  return out;
}

std::vector<float> scaled_rows(const Image& image, const std::vector<Weights>& columns) {
  std::vector<float> out(static_cast<std::size_t>(image.height) * columns.size() * 3);
  float* target = out.data();
  for (std::int64_t y = 0; y < image.height; ++y)
    for (const Weights& weights : columns) {
      const std::uint8_t* pixel = image.pixels.data() + (y * image.width + weights.first) * 3;
      float sums[3] = {0, 0, 0};
      for (const float share : weights.shares)
        for (float& sum : sums) sum += share * static_cast<float>(*pixel++);
      for (const float sum : sums) *target++ = sum;
    }
  return out;
}

}  // namespace

Result<Image> decode_image(std::span<const std::uint8_t> file, const std::string& name) {
  if (file.empty())
    return fail({.kind = ErrorKind::input, .what = "the file is empty (0 bytes)", .where = name});
  if (is_jpeg(file)) return decode_jpeg(file, name);
  if (begins_with(file, {0x89, 'P', 'N', 'G'})) return decode_png(file, name);
  return fail({.kind = ErrorKind::input,
               .what = fmt::format("neither JPEG nor PNG: it starts with {:02x} {:02x}", file[0],
                                   file.size() > 1 ? file[1] : 0),
               .where = name});
}

Result<DecodedBox> decode_box(std::span<const std::uint8_t> file, const std::string& name,
                              const ChooseBox& choose) {
  if (is_jpeg(file)) return decode_jpeg_box(file, name, choose);
  DecodedBox out{.image = TRY(decode_image(file, name)), .box = {}};
  out.box = choose(out.image.width, out.image.height);
  return out;
}

Image turned(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  const bool swaps = orientation >= 5;
  Image out{.width = swaps ? image.height : image.width,
            .height = swaps ? image.width : image.height,
            .pixels = {}};
  out.pixels.resize(image.pixels.size());
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  for (std::int64_t y = 0; y < out.height; ++y)
    for (std::int64_t x = 0; x < out.width; ++x) {
      // Where this pixel lies in the file, read along its own axes.
      std::int64_t across = swaps ? y : x, down = swaps ? x : y;
      if (from_right) across = image.width - 1 - across;
      if (from_below) down = image.height - 1 - down;
      std::copy_n(image.pixels.begin() + (down * image.width + across) * 3, 3,
                  out.pixels.begin() + (y * out.width + x) * 3);
    }
  return out;
}

Image fitted(const Image& image, std::int64_t width, std::int64_t height) {
  const double scale = std::min(static_cast<double>(image.width) / static_cast<double>(width),
                                static_cast<double>(image.height) / static_cast<double>(height));
  const double across = scale * static_cast<double>(width), down = scale * static_cast<double>(height);
  const auto columns = triangle(image.width, (static_cast<double>(image.width) - across) / 2, across, width);
  const auto rows = triangle(image.height, (static_cast<double>(image.height) - down) / 2, down, height);
  const std::vector<float> wide = scaled_rows(image, columns);
  Image out{.width = width, .height = height, .pixels = {}};
  const auto row = static_cast<std::size_t>(width) * 3;
  out.pixels.reserve(row * static_cast<std::size_t>(height));
  for (const Weights& weights : rows)
    for (std::size_t i = 0; i < row; ++i) {
      float sum = 0;
      for (std::size_t k = 0; k < weights.shares.size(); ++k)
        sum += weights.shares[k] * wide[(static_cast<std::size_t>(weights.first) + k) * row + i];
      out.pixels.push_back(static_cast<std::uint8_t>(std::clamp(std::lround(sum), 0L, 255L)));
    }
  return out;
}

}  // namespace dlrun::runtime
