// See number_type.hpp.
#include "runtime/data/numbers/number_type.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace dlrun::runtime {
namespace {

struct Half {
  std::uint16_t bits;
};

float value_of(Half half) {
  const int exponent = half.bits >> 10 & 0x1f, fraction = half.bits & 0x3ff;
  const float sign = (half.bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  if (exponent < 0x1f) return sign * std::ldexp(static_cast<float>(fraction + 0x400), exponent - 25);
  return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                       : std::numeric_limits<float>::quiet_NaN();
}

template <class Number>
Number value_of(Number number) {
  return number;
}

template <class Number, class To>
void convert(std::span<const std::byte> from, std::span<To> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Number number;
    std::memcpy(&number, from.data() + i * sizeof number, sizeof number);
    out[i] = static_cast<To>(value_of(number));
  }
}

struct Row {
  NumberType type;
  std::string_view name;
  char kind;
  std::size_t bytes;
  void (*floats)(std::span<const std::byte>, std::span<float>);
  void (*doubles)(std::span<const std::byte>, std::span<double>);
};

template <class Number>
constexpr Row row(NumberType type, std::string_view name, char kind) {
  return {type, name, kind, sizeof(Number), convert<Number, float>, convert<Number, double>};
}

constexpr std::array kRows = {
    row<Half>(NumberType::float16, "float16", 'f'),        row<float>(NumberType::float32, "float32", 'f'),
    row<double>(NumberType::float64, "float64", 'f'),      row<std::int8_t>(NumberType::int8, "int8", 'i'),
    row<std::uint8_t>(NumberType::uint8, "uint8", 'u'),    row<std::int16_t>(NumberType::int16, "int16", 'i'),
    row<std::uint16_t>(NumberType::uint16, "uint16", 'u'), row<std::int32_t>(NumberType::int32, "int32", 'i'),
    row<std::uint32_t>(NumberType::uint32, "uint32", 'u'), row<std::int64_t>(NumberType::int64, "int64", 'i'),
    row<std::uint64_t>(NumberType::uint64, "uint64", 'u')};

const Row& row_of(NumberType type) {
  return kRows[static_cast<std::size_t>(type)];
}

}  // namespace

std::string_view name_of(NumberType type) {
  return row_of(type).name;
}

std::size_t bytes_of(NumberType type) {
  return row_of(type).bytes;
}

std::optional<NumberType> number_type(char kind, std::size_t bytes) {
  for (const Row& row : kRows)
    if (row.kind == kind && row.bytes == bytes) return row.type;
  return std::nullopt;
}

void to_floats(NumberType type, std::span<const std::byte> from, std::span<float> out) {
  row_of(type).floats(from, out);
}

void to_doubles(NumberType type, std::span<const std::byte> from, std::span<double> out) {
  row_of(type).doubles(from, out);
}

}  // namespace dlrun::runtime
