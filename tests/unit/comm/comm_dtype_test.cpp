// The short forms of numbers, against values known from the formats' definitions.
#include "runtime/base/comm_dtype.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

using namespace dlrun::runtime;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

std::vector<float> there_and_back(CommDtype dtype, std::vector<float> numbers) {
  std::vector<std::byte> packed(bytes_of(dtype, numbers.size()));
  pack(dtype, packed.data(), numbers.data(), numbers.size());
  std::vector<float> back(numbers.size());
  unpack(dtype, back.data(), packed.data(), back.size());
  pack_rounding(dtype, packed.data(), numbers.data(), numbers.size());
  CHECK(numbers == back);  // the sender keeps what the others get
  return back;
}

// The nearest number with `digits` binary digits and no exponent below `least`, to even on a tie.
float nearest(float x, int digits, int least) {
  int exponent = 0;
  std::frexp(x, &exponent);
  const int step = std::max(exponent - digits, least);
  return std::ldexp(std::nearbyint(std::ldexp(x, -step)), step);
}

}  // namespace

TEST_CASE("numbers that a format holds come back as they were") {
  for (const CommDtype dtype : {CommDtype::f32, CommDtype::bf16, CommDtype::f16}) {
    const std::vector<float> exact = {0, -0.0F, 1, -1, 0.5F, 2, 65280 - 256, 1.0F / 16384, inf, -inf, 3};
    CHECK(there_and_back(dtype, exact) == exact);
  }
  CHECK(std::signbit(there_and_back(CommDtype::f16, {-0.0F})[0]));
}

TEST_CASE("others are rounded to the nearest, to even on a tie, at every length") {
  for (std::size_t length = 1; length < 70; ++length) {
    std::vector<float> numbers(length), bf16(length), f16(length);
    for (std::size_t i = 0; i < length; ++i) {
      numbers[i] =
          std::ldexp(1.0F + static_cast<float>(i * 37 % 8192) / 4096.0F, static_cast<int>(i % 40) - 28) *
          (i % 2 == 0 ? 1.0F : -1.0F);
      bf16[i] = nearest(numbers[i], 8, -133);
      f16[i] = nearest(numbers[i], 11, -24);
    }
    CHECK(there_and_back(CommDtype::bf16, numbers) == bf16);
    CHECK(there_and_back(CommDtype::f16, numbers) == f16);
    CHECK(there_and_back(CommDtype::f32, numbers) == numbers);
  }
}

TEST_CASE("f16's range: the smallest subnormals, and what is too large") {
  const float least = std::ldexp(1.0F, -24);
  CHECK(there_and_back(CommDtype::f16, {least, least / 2, least * 0.51F, least * 1.5F}) ==
        std::vector<float>{least, 0, least, 2 * least});
  CHECK(there_and_back(CommDtype::f16, {65504, 65519, 65520, -1e9F}) ==
        std::vector<float>{65504, 65504, inf, -inf});
}

TEST_CASE("not a number stays none, so that a diverged gradient is seen") {
  for (const CommDtype dtype : {CommDtype::bf16, CommDtype::f16}) {
    std::vector<std::byte> packed(bytes_of(dtype, 1));
    float number = std::numeric_limits<float>::quiet_NaN();
    pack(dtype, packed.data(), &number, 1);
    unpack(dtype, &number, packed.data(), 1);
    CHECK(std::isnan(number));
  }
}

TEST_CASE("what comes is added in f32") {
  for (const CommDtype dtype : {CommDtype::f32, CommDtype::bf16, CommDtype::f16}) {
    const std::vector<float> terms(21, 0.5F);
    std::vector<std::byte> packed(bytes_of(dtype, terms.size()));
    pack(dtype, packed.data(), terms.data(), terms.size());
    std::vector<float> sum(terms.size(), 1.0F / 1048576);
    add_unpacked(dtype, sum.data(), packed.data(), sum.size());
    CHECK(sum == std::vector<float>(terms.size(), 0.5F + 1.0F / 1048576));
  }
}
