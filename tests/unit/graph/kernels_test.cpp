// The own kernels where the operators' tests do not look: statistics of dropout, bf16 rounding, the loss.
#include "runtime/cpu/kernels/kernels.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/base/keyed_random.hpp"

using namespace dlrun::runtime;
using namespace dlrun::runtime::kernels;

namespace {

std::vector<float> dropped(std::uint64_t key, float probability, std::size_t count = 1 << 16) {
  std::vector<float> values(count, 1.0F);
  dropout({values.data(), Precision::f32}, {values.data(), Precision::f32}, 0, count, {key, probability});
  return values;
}

}  // namespace

TEST_CASE("dropout zeroes the asked share and scales the rest so that the mean stays") {
  for (const float probability : {0.1F, 0.5F, 0.9F}) {
    const std::vector<float> values = dropped(random_key({1, 2}), probability);
    double zeros = 0;
    for (const float value : values) {
      if (value == 0)
        zeros += 1;
      else
        REQUIRE(value == doctest::Approx(1 / (1 - probability)));
    }
    const double expected = probability * 65536, std_dev = std::sqrt(expected * (1 - probability));
    CHECK(std::abs(zeros - expected) < 5 * std_dev);
  }
}

TEST_CASE("dropout's draws are independent: neighbours, rows and keys do not agree more than by chance") {
  const std::vector<float> values = dropped(random_key({3}), 0.5F);
  const std::vector<float> other = dropped(random_key({4}), 0.5F);
  const double half = 32768, std_dev = std::sqrt(65536.0) / 2;
  for (const std::size_t shift : {1, 2, 16, 1024}) {
    double equal = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      equal += values[i] == values[(i + shift) % values.size()] ? 1 : 0;
    CHECK(std::abs(equal - half) < 5 * std_dev);
  }
  double equal = 0;
  for (std::size_t i = 0; i < values.size(); ++i) equal += values[i] == other[i] ? 1 : 0;
  CHECK(std::abs(equal - half) < 5 * std_dev);
}

TEST_CASE("a range of dropout draws what the whole would") {
  const std::vector<float> whole = dropped(9, 0.5F, 64);
  std::vector<float> part(32, 1.0F);
  dropout({part.data(), Precision::f32}, {part.data(), Precision::f32}, 32, 32, {9, 0.5F});
  CHECK(std::equal(part.begin(), part.end(), whole.begin() + 32));
}

TEST_CASE("bf16 rounds to the nearest, to even on a tie") {
  const auto round = [](float value) {
    alignas(64) float in[16] = {value};
    Bf16 out[16];
    Floats16 lanes;
    load(lanes, in);
    store(out, lanes);
    Bf16 scalar;
    set(scalar, value);
    CHECK(scalar.bits == out[0].bits);
    return to_float(out[0]);
  };
  CHECK(round(1.0F) == 1.0F);
  CHECK(round(1.0F + 0x1p-9F) == 1.0F);
  CHECK(round(1.0F + 0x1p-8F) == 1.0F);                // a tie, to even
  CHECK(round(1.0F + 3 * 0x1p-8F) == 1.0F + 0x1p-6F);  // a tie, to even
  CHECK(round(-3.14159F) == -3.140625F);
  CHECK(std::isinf(round(std::numeric_limits<float>::infinity())));
  CHECK(std::isnan(round(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("the loss does not overflow, and its gradient sums to zero in each row") {
  const std::vector<float> scores = {1e4F, -1e4F, 0, 1, 2, 3};
  const std::vector<std::int32_t> labels = {1, 2};
  std::vector<float> grad(16);
  const BatchResult result =
      softmax_cross_entropy({grad.data(), Precision::f32}, scores.data(), {labels.data()}, 2, 3);
  CHECK(result.loss_sum == doctest::Approx(2e4 + std::log(1 + std::exp(-1.0) + std::exp(-2.0))));
  CHECK(result.correct == 1);
  CHECK(grad[0] == doctest::Approx(0.5));
  CHECK(grad[1] == doctest::Approx(-0.5));
  CHECK(grad[3] + grad[4] + grad[5] == doctest::Approx(0).epsilon(1e-6));
}

TEST_CASE("tanh is the library's but for a few units in the last place, and its grad 1 - tanh^2") {
  std::vector<float> in;
  for (float x = -12; x < 12; x += 0.0078125F) in.push_back(x);
  in.resize(in.size() / 16 * 16);
  std::vector<float> out(in.size()), grad(in.size(), 1.0F);
  tanh({out.data(), Precision::f32}, {in.data(), Precision::f32}, in.size());
  tanh_backward({grad.data(), Precision::f32}, {out.data(), Precision::f32}, in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    REQUIRE(std::abs(out[i] - std::tanh(static_cast<double>(in[i]))) < 4e-7);
    REQUIRE(std::abs(out[i]) <= 1);
    REQUIRE(std::abs(grad[i] - (1 - out[i] * out[i])) < 1e-7);
  }
}

TEST_CASE("a logit of any size has a finite loss, and the grad that the difference of losses says") {
  const std::int32_t labels[] = {1, 0, 1, 0, -1};
  const float logits[] = {800, 800, -1.5F, -1.5F, 3};
  std::vector<float> grads(5, 9.0F);
  const BatchResult result = sigmoid_cross_entropy({grads.data(), Precision::f32},
                                                   {{logits, Precision::f32}, labels, 5, 1}, std::nullopt);
  CHECK(result.loss_sum == doctest::Approx(0 + 800 + std::log1p(std::exp(1.5)) + std::log1p(std::exp(-1.5))));
  CHECK(result.correct == 2);
  CHECK(grads[0] == 0);
  CHECK(grads[1] == doctest::Approx(0.2));
  CHECK(grads[2] == doctest::Approx((1 / (1 + std::exp(1.5)) - 1) / 5));
  CHECK(grads[4] == 0);
}

TEST_CASE(
    "normal numbers have mean 0, standard deviation 1 and a normal fraction beyond one and two deviations") {
  std::vector<float> numbers(1 << 16);
  normal(numbers.data(), numbers.size(), random_key({5}));
  double sum = 0, squares = 0, beyond_one = 0, beyond_two = 0;
  for (const float number : numbers) {
    sum += number, squares += number * number;
    beyond_one += std::abs(number) > 1 ? 1 : 0, beyond_two += std::abs(number) > 2 ? 1 : 0;
  }
  const auto count = static_cast<double>(numbers.size());
  CHECK(std::abs(sum / count) < 5 / std::sqrt(count));
  CHECK(squares / count == doctest::Approx(1).epsilon(0.03));
  CHECK(beyond_one / count == doctest::Approx(0.3173).epsilon(0.03));
  CHECK(beyond_two / count == doctest::Approx(0.0455).epsilon(0.1));
}

TEST_CASE("what is not a number stays visible through ReLU and pooling") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> in(16 * 4, -1.0F), out(16);
  std::vector<std::uint8_t> argmax(16);
  in[16 + 3] = nan;
  relu({in.data(), Precision::f32}, {in.data(), Precision::f32}, in.size());
  CHECK(std::isnan(in[16 + 3]));
  const PoolShape shape{1, 2, 2, 1, 1, 16, 2, 2, 0};
  max_pool_relu({out.data(), Precision::f32}, argmax.data(), {in.data(), Precision::f32}, shape);
  CHECK(std::isnan(out[3]));
  CHECK(out[2] == 0);
}
