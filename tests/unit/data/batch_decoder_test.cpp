// Images that a device decodes: which are given to it, and that those it leaves, and all the numbers, are
// what they are without it. The host emulates the device.
#include <mutex>

#include <doctest/doctest.h>

#include "image_support.hpp"
#include "runtime/data/batch_filler.hpp"
#include "runtime/data/images/image_data.hpp"
#include "runtime/data/images/jpeg_header.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

constexpr InputShape kShape{3, 8, 8, 2};
const Augmentation kAugmentation{.flip = true, .resized_crop = RandomResizedCrop{}};

std::span<const std::uint8_t> bytes_of(const std::string& file) {
  return {reinterpret_cast<const std::uint8_t*>(file.data()), file.size()};
}

std::string photo_of(int width, int height, const JpegKind& kind = {}) {
  return jpeg_of(
      width, height,
      [&](int x, int y) {
        std::vector<std::uint8_t> out;
        for (int part = 0; part < kind.components; ++part)
          out.push_back(static_cast<std::uint8_t>((x * 11 + y * 5 + part * 90) % 256));
        return out;
      },
      kind);
}

class HostAsDevice final : public BatchDecoder {
 public:
  std::size_t usual() const override { return 4; }
  Result<void> decode(std::span<Image> images) override {
    if (fails) return fail(ErrorKind::unavailable, "the device is lost");
    for (Image& image : images) {
      const std::lock_guard lock(mutex_);
      widths.push_back(image.width);
      if (image.width == kRefused) continue;
      const runtime::Image whole = TRY(decode_image(image.file, "photo"));
      const Scaling& by = image.cut.scaling;
      put_planes(resampled(whole, by.box, by.columns, by.rows), kShape.channels, image.cut.side,
                 image.row.data());
      image.is_done = true;
    }
    return {};
  }
  static constexpr std::int64_t kRefused = 33;
  bool fails = false;
  std::vector<std::int64_t> widths;  // of what it was given

 private:
  std::mutex mutex_;
};

Dataset data_of(const Folder& folder, const std::vector<std::string>& files, Damaged damaged) {
  std::vector<ImageFile> out;
  for (std::size_t i = 0; i < files.size(); ++i)
    out.push_back({folder.write(fmt::format("{}.img", i), files[i]), static_cast<std::uint16_t>(i % 2)});
  return keep_compressed(out, kShape, damaged).value();
}

struct Seen {
  std::vector<std::uint8_t> bytes;
  std::uint64_t counted = 0;
  Result<void> state;
};
Seen fill(const Dataset& data, const std::shared_ptr<BatchDecoder>& decoder,
          const std::optional<AugmentationKey>& key) {
  Seen out{std::vector<std::uint8_t>(data.count * data.pixels_per_sample()), 0, {}};
  std::vector<std::int32_t> labels(data.count);
  const BatchFiller filler(data, {}, kAugmentation,
                           {.evaluation = {.centre_crop = 0.875}, .workers = 2U, .decoder = decoder});
  for (std::uint64_t i = 0; i < data.count; ++i) filler.announce(i, key);
  out.counted = filler.fill(data.count, [](std::uint64_t i) { return i; }, key, {{}, out.bytes, labels});
  out.state = filler.state();
  return out;
}

}  // namespace

TEST_CASE("the usual JPEG is known by its markers, with its size") {
  const auto header = plain_jpeg_header(bytes_of(photo_of(40, 30)));
  REQUIRE(header);
  CHECK(header->width == 40);
  CHECK(header->height == 30);
  CHECK(plain_jpeg_header(bytes_of(photo_of(16, 9, {.sampling = 2}))));
  CHECK(plain_jpeg_header(bytes_of(photo_of(16, 9, {JCS_GRAYSCALE, 1}))));
  CHECK(plain_jpeg_header(bytes_of(photo_of(16, 9, {JCS_RGB, 3, exif_of(1)}))));
}

TEST_CASE("any other file is left to the host") {
  CHECK_FALSE(plain_jpeg_header(bytes_of(photo_of(16, 9, {.progressive = true}))));
  CHECK_FALSE(plain_jpeg_header(bytes_of(photo_of(16, 9, {JCS_CMYK, 4}))));
  CHECK_FALSE(plain_jpeg_header(bytes_of(photo_of(16, 9, {JCS_RGB, 3, exif_of(6)}))));
  const std::string whole = photo_of(16, 9);
  for (std::size_t length = 0; length < whole.size(); ++length)
    CHECK_FALSE(plain_jpeg_header(bytes_of(whole.substr(0, length))));
  // Cut short, with an end put behind what is left of the markers.
  for (std::size_t length = 2; length < 200; ++length) {
    std::string torn = whole.substr(0, length) + "\xff\xd9";
    torn.shrink_to_fit();
    (void)plain_jpeg_header(bytes_of(torn));  // reads nothing behind the file
  }
  const std::size_t frame = whole.find("\xff\xc0"), length = 2 + 8 + 3 * 3;  // of the marker and what it has
  REQUIRE(frame != std::string::npos);
  std::string twice = whole;
  twice.insert(frame, whole.substr(frame, length));
  CHECK_FALSE(plain_jpeg_header(bytes_of(twice)));
  CHECK_FALSE(plain_jpeg_header(
      bytes_of(png_of<std::uint8_t>(4, 4, PNG_FORMAT_GRAY, std::vector<std::uint8_t>(16, 7)))));
}

TEST_CASE("a device gets the usual JPEGs, and no row differs from what the host makes of it") {
  const Folder folder;
  const Dataset data = data_of(
      folder,
      {photo_of(40, 30), photo_of(17, 50, {JCS_GRAYSCALE, 1}), photo_of(30, 30, {.progressive = true}),
       photo_of(HostAsDevice::kRefused, 20), photo_of(20, 31, {JCS_RGB, 3, exif_of(6)}), photo_of(64, 48)},
      Damaged::refused);
  for (const std::optional<AugmentationKey> key :
       {std::optional<AugmentationKey>{}, {AugmentationKey{3, 4}}}) {
    const auto device = std::make_shared<HostAsDevice>();
    const Seen by_host = fill(data, nullptr, key), by_device = fill(data, device, key);
    CHECK(by_host.state);
    CHECK(by_device.state);
    CHECK(by_device.counted == data.count);
    CHECK(by_device.bytes == by_host.bytes);
    std::sort(device->widths.begin(), device->widths.end());
    CHECK(device->widths == std::vector<std::int64_t>{17, HostAsDevice::kRefused, 40, 64});
  }
}

TEST_CASE("an image that is damaged is named, and a device that fails is not taken for damage") {
  const Folder folder;
  const std::string whole = photo_of(40, 30);
  const Dataset data = data_of(folder, {whole, whole.substr(0, whole.size() / 2), whole}, Damaged::dropped);
  const auto device = std::make_shared<HostAsDevice>();
  const Seen dropped = fill(data, device, AugmentationKey{1, 1});
  CHECK(dropped.state);
  CHECK(dropped.counted == 2);
  device->fails = true;
  const Seen lost = fill(data, device, AugmentationKey{1, 1});
  REQUIRE_FALSE(lost.state);
  CHECK(contains(lost.state.error().text(), "the device is lost"));
}
