// How fast encoded images become rows: random-resized crop and flip of JPEGs of 500x375 pixels, as ImageNet
// has them, made to order. Prints as JSON, in images per second: libjpeg-turbo alone (a whole image decoded
// by one thread), our crop by one thread, and rows of 224x224 by so many workers.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>

#include "runtime/base/keyed_random.hpp"
#include "runtime/data/batch_filler.hpp"
#include "runtime/data/images/image_data.hpp"
#include "runtime/data/images/transform.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "tests/unit/data/jpeg_file.hpp"

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

constexpr int kWidth = 500, kHeight = 375, kQuality = 87;
using Clock = std::chrono::steady_clock;

double noise(std::uint64_t key, int x, int y, std::uint64_t channel) {
  return static_cast<double>(
             mix(key, static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(y), channel) >> 40) /
             static_cast<double>(1 << 24) -
         0.5;
}

// Noise at several scales, smooth between its points, and a little of each pixel's own.
double brightness(std::uint64_t key, int x, int y, std::uint64_t channel) {
  double sum = 128;
  for (const auto& [cell, amount] : {std::pair(80, 120.0), {40, 100.0}, {20, 80.0}, {10, 50.0}, {4, 24.0}}) {
    const int left = x / cell, top = y / cell;
    const double across = static_cast<double>(x % cell) / cell, down = static_cast<double>(y % cell) / cell;
    const std::uint64_t scale = key + static_cast<std::uint64_t>(cell);
    const auto at = [&](int dx, int dy) { return noise(scale, left + dx, top + dy, channel); };
    const double upper = at(0, 0) * (1 - across) + at(1, 0) * across;
    const double lower = at(0, 1) * (1 - across) + at(1, 1) * across;
    sum += amount * (upper * (1 - down) + lower * down);
  }
  return sum + 44 * noise(key, x, y, channel);
}

std::string make_jpeg(std::uint64_t key) {
  const auto paint = [key](int x, int y) {
    std::vector<std::uint8_t> out;
    for (std::uint64_t channel = 0; channel < 3; ++channel)
      out.push_back(static_cast<std::uint8_t>(std::clamp(brightness(key, x, y, channel), 0.0, 255.0)));
    return out;
  };
  return dlrun::test::jpeg_of(kWidth, kHeight, paint, {.quality = kQuality});
}

// Two classes, in the shape of a folder per class, which PyTorch's ImageFolder reads too.
std::uint64_t make_folder(const std::filesystem::path& folder, int images) {
  std::uint64_t bytes = 0;
  for (int i = 0; i < images; ++i) {
    const std::filesystem::path file = folder / (i % 8 == 0 ? "val" : "train") /
                                       (i % 3 == 0 ? "aster" : "tulip") / fmt::format("{:05}.jpg", i);
    std::error_code problem;
    if (std::filesystem::exists(file, problem)) {
      bytes += std::filesystem::file_size(file, problem);
      continue;
    }
    const std::string jpeg = make_jpeg(static_cast<std::uint64_t>(i));
    bytes += jpeg.size();
    if (!make_directories(file.parent_path(), Access::shared) || !replace_file(file, jpeg, Durability::none))
      std::abort();
  }
  return bytes / static_cast<std::uint64_t>(images);
}

// Calls of `work` per second, for about that long.
template <class Work>
double rate_of(double seconds, const Work& work) {
  std::uint64_t done = 0;
  const auto begin = Clock::now();
  double took = 0;
  while (took < seconds) {
    done += work();
    took = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return static_cast<double>(done) / took;
}

double libjpeg_rate(const Dataset& data, double seconds) {
  std::vector<std::uint8_t> file, rows(kWidth * kHeight * 3);
  std::uint64_t next = 0;
  return rate_of(seconds, [&]() -> std::uint64_t {
    if (!data.encoded->read(next++ % data.count, file)) std::abort();
    jpeg_decompress_struct decoder{};
    jpeg_error_mgr errors{};
    decoder.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&decoder);
    jpeg_mem_src(&decoder, file.data(), static_cast<unsigned long>(file.size()));
    jpeg_read_header(&decoder, TRUE);
    jpeg_start_decompress(&decoder);
    while (decoder.output_scanline < decoder.output_height) {
      JSAMPROW target = rows.data() + std::size_t{decoder.output_scanline} * kWidth * 3;
      jpeg_read_scanlines(&decoder, &target, 1);
    }
    jpeg_finish_decompress(&decoder);
    jpeg_destroy_decompress(&decoder);
    return 1;
  });
}

const Augmentation kCut{.flip = true, .resized_crop = RandomResizedCrop{}};

double crop_rate(const Dataset& data, double seconds) {
  std::vector<std::uint8_t> file, row(data.pixels_per_sample());
  std::uint64_t next = 0;
  return rate_of(seconds, [&]() -> std::uint64_t {
    const std::uint64_t sample = next % data.count;
    const EncodedImage image = data.encoded->read(sample, file).value();
    const SampleKey key{{.seed = 1, .epoch = next++ / data.count}, sample};
    if (!transform(image, data.shape, kCut, {}, key, "", row)) std::abort();
    return 1;
  });
}

// As a training asks: batches of 256 rows of bytes, announced as far as there is memory.
double filler_rate(const Dataset& data, unsigned workers, double seconds) {
  constexpr std::uint64_t batch = 256;
  const BatchFiller filler(data, {}, kCut, {.memory = std::uint64_t{512} << 20, .workers = workers});
  std::vector<std::uint8_t> rows(batch * data.pixels_per_sample());
  std::vector<std::int32_t> labels(batch);
  std::uint64_t taken = 0, announced = 0;
  const auto key = [&](std::uint64_t i) { return AugmentationKey{.seed = 1, .epoch = i / data.count}; };
  const auto one_batch = [&]() -> std::uint64_t {
    for (; filler.free_rows() > 0; ++announced) filler.announce(announced % data.count, key(announced));
    // A batch is of one epoch.
    const std::uint64_t count = std::min(batch, data.count - taken % data.count);
    filler.fill(count, [&](std::uint64_t i) { return (taken + i) % data.count; }, key(taken),
                {.numbers = {}, .bytes = rows, .labels = labels});
    taken += count;
    return count;
  };
  one_batch();
  return rate_of(seconds, one_batch);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return std::fprintf(stderr, "usage: dlrun-input-rate FOLDER IMAGES SECONDS WORKERS...\n"), 64;
  const double seconds = std::strtod(argv[3], nullptr);
  const std::uint64_t bytes = make_folder(argv[1], std::atoi(argv[2]));
  const auto parts =
      load_images({.directory = argv[1], .height = 224, .width = 224, .keep = ImageSpec::Keep::compressed});
  if (!parts) return std::fprintf(stderr, "%s\n", parts.error().text().c_str()), 65;
  Json out{{"bytes_per_image", bytes},
           {"libjpeg", libjpeg_rate(parts->train, seconds)},
           {"crop", crop_rate(parts->train, seconds)}};
  for (int i = 4; i < argc; ++i)
    out["workers"][argv[i]] = filler_rate(parts->train, static_cast<unsigned>(std::atoi(argv[i])), seconds);
  std::printf("%s\n", dlrun::to_text(out).c_str());
  return 0;
}
