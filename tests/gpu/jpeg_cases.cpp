// JPEGs decoded by nvJPEG against libjpeg-turbo's, through the same cut. Where a file has half of the
// colours, the two make the others from their neighbours in their own ways: so rows differ, by no more than
// is said here. Whether an image is decoded alone or among others changes no bit.
#include <cmath>

#include "compare.hpp"
#include "runtime/base/keyed_random.hpp"
#include "runtime/data/images/jpeg_header.hpp"
#include "runtime/train/gpu_decoder.hpp"
#include "tests/unit/data/jpeg_file.hpp"

namespace dlrun::runtime::gpu {
namespace {

const Augmentation kAugmentation{.flip = true, .resized_crop = RandomResizedCrop{}};
const Evaluation kEvaluation{.centre_crop = 0.875};

struct Bound {
  double mean;
  int most;
};
struct Kind {
  const char* name;
  test::JpegKind jpeg;
  Bound bound;
};
// Seen on an H200 with nvJPEG 13.0.1: 0; 0; 0.065 and 2.
const Kind kKinds[] = {{"grey", {JCS_GRAYSCALE, 1, {}, false, 90}, {0.05, 1}},
                       {"colours", {JCS_RGB, 3, {}, false, 90, 1}, {0.05, 1}},
                       {"halved colours", {JCS_RGB, 3, {}, false, 90, 2}, {0.25, 5}}};

// Waves with a little noise.
std::string photo_of(int width, int height, const test::JpegKind& kind, std::uint64_t number) {
  return test::jpeg_of(
      width, height,
      [&](int x, int y) {
        std::vector<std::uint8_t> out;
        for (int part = 0; part < kind.components; ++part) {
          const double wave =
              std::sin(0.03 * (x + 20 * part)) + std::cos(0.04 * y + static_cast<double>(number));
          const auto noise = static_cast<double>(
              mix(number, static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(y)) % 9);
          out.push_back(static_cast<std::uint8_t>(120 + 55 * wave + noise));
        }
        return out;
      },
      kind);
}

struct Sample {
  std::string file;
  std::vector<std::uint8_t> here, alone, together;
  std::span<const std::uint8_t> bytes() const {
    return {reinterpret_cast<const std::uint8_t*>(file.data()), file.size()};
  }
};

Result<BatchDecoder::Image> asked(const Sample& sample, const InputShape& shape,
                                  const std::optional<SampleKey>& key, std::vector<std::uint8_t>& row) {
  const auto header = plain_jpeg_header(sample.bytes());
  if (!header) return fail(ErrorKind::internal, "the usual JPEG is not known");
  row.resize(static_cast<std::size_t>(shape.numbers()));
  const auto cut = cut_of({0, 0, header->width, header->height}, shape, kAugmentation, kEvaluation, key);
  if (!cut) return fail(ErrorKind::internal, "there is no cut");
  return BatchDecoder::Image{sample.bytes(), header->width, header->height, *cut, row};
}

void expect_close(const Kind& kind, const InputShape& shape, const std::vector<Sample>& samples) {
  double sum = 0, count = 0;
  int most = 0;
  for (const Sample& sample : samples)
    for (std::size_t i = 0; i < sample.here.size(); ++i) {
      const int differs = std::abs(int{sample.here[i]} - int{sample.together[i]});
      sum += differs, count += 1, most = std::max(most, differs);
    }
  const std::string said =
      fmt::format("nvjpeg, {}, {} channels: rows differ by {:.3f} on average, at most {}", kind.name,
                  shape.channels, sum / count, most);
  fmt::print("{}\n", said);
  expect(sum / count <= kind.bound.mean && most <= kind.bound.most, said);
}

Result<void> compare_kind(BatchDecoder& decoder, const Kind& kind, const InputShape& shape) {
  std::vector<Sample> samples(24);
  std::vector<BatchDecoder::Image> together;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Sample& sample = samples[i];
    const int width = 200 + static_cast<int>(mix(i) % 400), height = 160 + static_cast<int>(mix(i, 1) % 300);
    sample.file = photo_of(width, height, kind.jpeg, i);
    sample.here.resize(static_cast<std::size_t>(shape.numbers()));
    const std::optional<SampleKey> key =
        i % 3 == 0 ? std::nullopt : std::optional(SampleKey{{1, 2}, std::uint64_t{i}});
    TRY(transform({.bytes = sample.bytes(), .raw = {}}, shape, kAugmentation, kEvaluation, key, "photo",
                  sample.here));
    together.push_back(TRY(asked(sample, shape, key, sample.together)));
    BatchDecoder::Image alone = TRY(asked(sample, shape, key, sample.alone));
    TRY(decoder.decode({&alone, 1}));
    expect(alone.is_done, fmt::format("nvjpeg decodes {} of {}x{}", kind.name, width, height));
  }
  TRY(decoder.decode(together));
  for (std::size_t i = 0; i < samples.size(); ++i)
    expect(together[i].is_done && samples[i].alone == samples[i].together,
           fmt::format("nvjpeg gives {} number {} the same alone and among others", kind.name, i));
  expect_close(kind, shape, samples);
  return {};
}

}  // namespace

Result<void> compare_jpegs(const CudaLibrary& library) {
  for (const std::int64_t channels : {3, 1}) {
    const InputShape shape{channels, 224, 224, 10};
    Device device;
    device.library = library;
    const auto decoder = TRY(make_gpu_decoder(device, shape));
    for (const Kind& kind : kKinds) TRY(compare_kind(*decoder, kind, shape));
    // What it does not take it leaves, and goes on.
    Sample torn;
    torn.file = photo_of(300, 200, kKinds[1].jpeg, 1);
    torn.file.resize(torn.file.size() / 3);
    std::vector<std::uint8_t> row(static_cast<std::size_t>(shape.numbers()));
    BatchDecoder::Image none{torn.bytes().first(10), 300, 200, {}, row};
    none.cut = *cut_of({0, 0, 300, 200}, shape, kAugmentation, kEvaluation, std::nullopt);
    TRY(decoder->decode({&none, 1}));
    expect(!none.is_done, "nvjpeg leaves what is no JPEG to the host");
  }
  return {};
}

}  // namespace dlrun::runtime::gpu
