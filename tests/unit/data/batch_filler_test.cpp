#include "runtime/data/batch_filler.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "runtime/data/synthetic.hpp"

using namespace dlrun::runtime;

namespace {

struct Filled {
  std::vector<float> input;
  std::vector<std::int32_t> labels;
};

Filled fill(const Dataset& data, const Augmentation& augmentation, std::uint64_t count, AugmentationKey key,
            const Conversion& conversion = {}) {
  Filled out{std::vector<float>(4 * data.pixels_per_sample()), std::vector<std::int32_t>(4)};
  BatchFiller(data, conversion, augmentation)
      .fill(
          count, [](std::uint64_t i) { return 10 + i; }, key, out.input, out.labels);
  return out;
}

const InputShape shape{.channels = 2, .height = 6, .width = 5, .classes = 10};

}  // namespace

TEST_CASE("pixels become value / 255, or standardised by channel") {
  const auto data = make_synthetic(shape, 32, 1);
  REQUIRE(data.has_value());
  const Filled plain = fill(data->train, {}, 4, {});
  CHECK(plain.input[7] == doctest::Approx(data->train.pixels(10)[7] / 255.0));
  CHECK(plain.labels[2] == data->train.labels[12]);
  const Filled standard = fill(data->train, {}, 4, {}, {.mean = {0.5, 0.25}, .std_dev = {0.5, 2}});
  CHECK(standard.input[7] == doctest::Approx((data->train.pixels(10)[7] / 255.0 - 0.5) / 0.5));
  CHECK(standard.input[37] == doctest::Approx((data->train.pixels(10)[37] / 255.0 - 0.25) / 2));
}

TEST_CASE("rows beyond the count hold samples but do not count") {
  const auto data = make_synthetic(shape, 32, 1);
  const Filled filled = fill(data->train, {}, 3, {});
  CHECK(filled.labels[3] == -1);
  const std::size_t row = data->train.pixels_per_sample();
  CHECK(std::equal(filled.input.begin(), filled.input.begin() + static_cast<std::ptrdiff_t>(row),
                   filled.input.begin() + static_cast<std::ptrdiff_t>(3 * row)));
  const Filled nothing = fill(data->train, {}, 0, {});
  CHECK(std::count(nothing.labels.begin(), nothing.labels.end(), -1) == 4);
}

TEST_CASE("augmentation is a function of seed, epoch and sample") {
  const auto data = make_synthetic(shape, 32, 1);
  const Augmentation both{.crop_padding = 2, .flip = true};
  const Filled once = fill(data->train, both, 4, {1, 0});
  CHECK(once.input == fill(data->train, both, 4, {1, 0}).input);
  CHECK(once.input != fill(data->train, both, 4, {1, 1}).input);
  CHECK(once.input != fill(data->train, both, 4, {2, 0}).input);
  CHECK(once.input != fill(data->train, {}, 4, {1, 0}).input);
}

TEST_CASE("a mixed row is two samples and says so") {
  const auto data = make_synthetic(shape, 32, 1);
  const Mixup mixup{.alpha = 0.5, .samples = 20, .sample_at = [](std::uint64_t i) { return i + 5; }};
  const std::size_t row = data->train.pixels_per_sample();
  std::vector<float> input(4 * row), weights(4);
  std::vector<std::int32_t> labels(4), others(4);
  BatchFiller filler(data->train, {}, {.crop_padding = 2, .flip = true});
  filler.mix_with(mixup);
  const BatchFiller::Rows rows{input, {}, labels, {}, others, weights};
  const AugmentationKey key{7, 2};
  filler.fill(
      3, [](std::uint64_t i) { return 10 + i; }, key, rows);
  CHECK(labels[3] == -1);
  const BatchFiller plain(data->train, {}, {.crop_padding = 2, .flip = true});
  for (std::uint64_t i = 0; i < 3; ++i) {
    const Mixture mixture = mixture_of(mixup, {key, 10 + i});
    CHECK(weights[i] == mixture.weight);
    CHECK(mixture.other >= 5);
    CHECK(mixture.other < 25);
    CHECK(labels[i] == data->train.labels[10 + i]);
    CHECK(others[i] == data->train.labels[mixture.other]);
    std::vector<float> own(row), other(row);
    std::vector<std::int32_t> one(1);
    plain.fill(
        1, [i](std::uint64_t) { return 10 + i; }, key, own, one);
    plain.fill(
        1, [&](std::uint64_t) { return mixture.other; }, key, other, one);
    for (std::size_t at = 0; at < row; ++at)
      CHECK(input[i * row + at] == doctest::Approx(weights[i] * own[at] + (1 - weights[i]) * other[at]));
  }
  std::vector<float> evaluated(4 * row), unmixed(4 * row);
  filler.fill(4, [](std::uint64_t i) { return i; }, std::nullopt,
              {evaluated, {}, labels, {}, others, weights});
  plain.fill(
      4, [](std::uint64_t i) { return i; }, std::nullopt, unmixed, labels);
  CHECK(evaluated == unmixed);
}

TEST_CASE("a stage that needs answers alone has those of whole rows, and reads no sample") {
  const auto data = make_synthetic(shape, 32, 1);
  struct Answers {
    std::vector<float> input = std::vector<float>(4 * 60, -7), weights = std::vector<float>(4);
    std::vector<std::int32_t> labels = std::vector<std::int32_t>(4), others = std::vector<std::int32_t>(4);
  };
  const auto filled = [&data](DecodeOptions::Rows rows) {
    Answers out;
    BatchFiller filler(data->train, {}, {}, {.rows = rows});
    filler.mix_with({0.2, 32, [](std::uint64_t number) { return number; }});
    const std::uint64_t counted =
        filler.fill(3, [](std::uint64_t i) { return 10 + i; }, AugmentationKey{1, 2},
                    {.numbers = out.input,
                     .bytes = {},
                     .labels = out.labels,
                     .other_labels = out.others,
                     .own_weights = out.weights});
    CHECK(counted == 3);
    return out;
  };
  const Answers whole = filled(DecodeOptions::Rows::whole), answers = filled(DecodeOptions::Rows::answers);
  CHECK(answers.labels == whole.labels);
  for (std::size_t row = 0; row < 3; ++row) {
    CHECK(answers.others[row] == whole.others[row]);
    CHECK(answers.weights[row] == whole.weights[row]);
  }
  CHECK(answers.input == std::vector<float>(4 * 60, -7));
  CHECK(whole.input != answers.input);
}

TEST_CASE("weights of mixtures have Beta's mean and variance, and others are spread evenly") {
  for (const double alpha : {0.05, 0.2, 1.0, 2.0}) {
    const Mixup mixup{.alpha = alpha, .samples = 10, .sample_at = [](std::uint64_t i) { return i; }};
    constexpr std::uint64_t count = 20000;
    double sum = 0, squares = 0;
    std::vector<int> others(10);
    for (std::uint64_t sample = 0; sample < count; ++sample) {
      const Mixture mixture = mixture_of(mixup, {{1, 2}, sample});
      const auto weight = static_cast<double>(mixture.weight);
      sum += weight, squares += (weight - 0.5) * (weight - 0.5);
      ++others[mixture.other];
    }
    CAPTURE(alpha);
    CHECK(sum / count == doctest::Approx(0.5).epsilon(0.03));
    CHECK(squares / count == doctest::Approx(1 / (4 * (2 * alpha + 1))).epsilon(0.03));
    for (const int times : others) CHECK(times == doctest::Approx(count / 10).epsilon(0.1));
  }
  const Mixup mixup{.alpha = 0.2, .samples = 10, .sample_at = [](std::uint64_t i) { return i; }};
  CHECK(mixture_of(mixup, {{1, 2}, 3}).weight == mixture_of(mixup, {{1, 2}, 3}).weight);
  CHECK(mixture_of(mixup, {{1, 2}, 3}).weight != mixture_of(mixup, {{1, 3}, 3}).weight);
  CHECK(mixture_of(mixup, {{1, 2}, 3}).weight != mixture_of(mixup, {{2, 2}, 3}).weight);
}

TEST_CASE("a flip mirrors columns and keeps rows") {
  const auto data = make_synthetic(shape, 32, 1);
  const Filled plain = fill(data->train, {}, 1, {});
  bool flipped = false;
  for (std::uint64_t epoch = 0; epoch < 20 && !flipped; ++epoch) {
    const Filled now = fill(data->train, {.crop_padding = 0, .flip = true}, 1, {1, epoch});
    flipped =
        now.input[0] == plain.input[4] && now.input[4] == plain.input[0] && now.input[5] == plain.input[9];
  }
  CHECK(flipped);
}

TEST_CASE("bytes mean the numbers, plain and augmented") {
  const auto data = make_synthetic(shape, 32, 1);
  const Conversion conversion{.mean = {0.5, 0.25}, .std_dev = {0.5, 2}};
  const InputScaling meaning = input_scaling_of(conversion, 2);
  const std::size_t row = data->train.pixels_per_sample(), plane = row / 2;
  for (const Augmentation& augmentation : {Augmentation{}, Augmentation{.crop_padding = 3, .flip = true}}) {
    const Filled numbers = fill(data->train, augmentation, 4, {1, 2}, conversion);
    std::vector<std::uint8_t> bytes(4 * row);
    std::vector<std::int32_t> labels(4);
    BatchFiller(data->train, conversion, augmentation)
        .fill(4, [](std::uint64_t i) { return 10 + i; }, AugmentationKey{1, 2}, {{}, bytes, labels});
    CHECK(labels == numbers.labels);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::size_t channel = i / plane % 2;
      const float meant = static_cast<float>(bytes[i]) * meaning.scale[channel] + meaning.shift[channel];
      CHECK(meant == doctest::Approx(numbers.input[i]).epsilon(1e-6));  // some processors round once
    }
  }
}

TEST_CASE("a crop is the image shifted, zeros outside, and perhaps mirrored") {
  const auto data = make_synthetic(shape, 32, 1);
  const std::uint8_t* const from = data->train.pixels(10).data();
  constexpr std::int64_t most = 7;  // beyond the image as well
  const auto is = [&](const Filled& now, std::int64_t down, std::int64_t right, bool flip) {
    for (std::int64_t c = 0; c < 2; ++c)
      for (std::int64_t y = 0; y < 6; ++y)
        for (std::int64_t x = 0; x < 5; ++x) {
          const std::int64_t v = y + down, u = (flip ? 4 - x : x) + right;
          const bool inside = v >= 0 && v < 6 && u >= 0 && u < 5;
          const float expected = inside ? static_cast<float>(from[(c * 6 + v) * 5 + u]) * (1.0F / 255) : 0.0F;
          if (now.input[static_cast<std::size_t>((c * 6 + y) * 5 + x)] != expected) return false;
        }
    return true;
  };
  for (std::uint64_t epoch = 0; epoch < 40; ++epoch) {
    const Filled now = fill(data->train, {.crop_padding = most, .flip = true}, 1, {1, epoch});
    bool found = false;
    for (std::int64_t down = -most; down <= most; ++down)
      for (std::int64_t right = -most; right <= most; ++right)
        found = found || is(now, down, right, false) || is(now, down, right, true);
    CHECK(found);
  }
}
